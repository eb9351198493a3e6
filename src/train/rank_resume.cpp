// The methods of Rank that read a checkpoint, or a file of weights.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <map>

#include "run/conv_plans_file.h"
#include "run/vocabulary_file.h"
#include "tensor/errors.h"
#include "train/rank.h"
#include "train/redistribute.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

constexpr int64_t kMostWorkers = 1 << 20;
constexpr int64_t kMostSteps = int64_t{1} << 48;  // sums of a few such numbers do not overflow

struct Bounds {
  int64_t least = 0, most = kMostSteps;
};

int64_t require_within(const Checkpoint& checkpoint, const char* key, int64_t value, Bounds bounds) {
  if (value >= bounds.least && value <= bounds.most) return value;
  throw_user_error("checkpoint {}: {} is {} in its manifest, and can only be from {} to {}; take an earlier checkpoint",
                   checkpoint.path().string(), key, value, bounds.least, bounds.most);
}

// Checksums show what a disk has damaged, not what somebody has written. So every number of a manifest is checked
// before arithmetic uses it.
int64_t whole_number(const Checkpoint& checkpoint, const char* key, int64_t otherwise, Bounds bounds = {}) {
  const Row& values = checkpoint.manifest().values;
  if (values.find(key) == nullptr) return otherwise;
  const std::optional<int64_t> value = values.integer(key);
  if (value) return require_within(checkpoint, key, *value, bounds);
  throw_user_error("checkpoint {}: {} is no whole number in its manifest; take an earlier checkpoint",
                   checkpoint.path().string(), key);
}

float loss_scale(const Checkpoint& checkpoint, float otherwise) {
  const double scale = checkpoint.manifest().values.number("loss_scale").value_or(otherwise);
  if (scale > 0 && scale <= std::numeric_limits<float>::max()) return static_cast<float>(scale);
  throw_user_error(
      "checkpoint {}: loss_scale is {} in its manifest, and can only be positive; take an earlier checkpoint",
      checkpoint.path().string(), scale);
}

}  // namespace

void Rank::start_from(const InitialWeights& initial) {
  initial.load(memory_.weights, memory_.mean_statistics);
  for (const Worker& worker : memory_.workers) {
    device_->copy(worker.statistics.data(), memory_.mean_statistics.data(), memory_.mean_statistics.bytes());
  }
}

void Rank::restore(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  const int64_t saved_workers = whole_number(checkpoint, "workers", 0, {1, kMostWorkers});
  if (data_.vocabulary != nullptr) require_same_vocabulary(checkpoint, *data_.vocabulary);
  require_same_conv_plans(checkpoint, config_, conv_plans_xxh64_);
  require_same_data(checkpoint, saved_workers);
  load_weights(checkpoint, memory_.weights, memory_.mean_statistics);
  const SafetensorsFile shared = checkpoint.open(kSharedFile);
  for (const NamedState& state : memory_.optimizer->state()) {
    if (state.worker < 0) load_tensors(shared, *state.arena, state.name + ".");
  }
  StepControl control = memory_.record.read_control();
  control.loss_scale = loss_scale(checkpoint, control.loss_scale);
  control.good_steps =
      static_cast<uint32_t>(whole_number(checkpoint, "good_steps", 0, {0, std::numeric_limits<uint32_t>::max()}));
  control.skip = manifest.values.boolean("skipped").value_or(false) ? 1 : 0;
  memory_.record.restore_control(control);
  plateau_ = {.best = manifest.values.number("plateau_best").value_or(PlateauState{}.best),
              .bad = whole_number(checkpoint, "plateau_bad", 0),
              .plateaus = whole_number(checkpoint, "plateaus", 0)};
  best_ = {.loss = manifest.values.number("best_loss").value_or(BestEvaluation{}.loss),
           .step = whole_number(checkpoint, kBestStep, 0),
           .since = whole_number(checkpoint, kSinceBest, 0)};
  best_kept_ = whole_number(checkpoint, kBestKept, best_.step);
  const int64_t skipped_steps = whole_number(checkpoint, kSkippedInRow, 0);
  skipped_ = {manifest.step, skipped_steps, whole_number(checkpoint, kSkippedExchanges, skipped_steps)};
  // A run that is not sound skips steps, or its newest evaluation gave no finite loss.
  finite_loss_ = skipped_.in_row > 0 || manifest.values.boolean(kSound).value_or(true);
  earlier_seconds_ = manifest.values.number("wall_seconds").value_or(0);
  flushed_ = manifest.values.boolean("flushed").value_or(false);
  owes_evaluation_ = manifest.values.boolean(kOwesEvaluation).value_or(false);
  step_ = require_within(checkpoint, "step", manifest.step, {});
  const int64_t epoch_steps = manifest.values.integer("steps_per_epoch").value_or(0);
  position_ = whole_number(checkpoint, "position", step_);
  if (position_ > config_.training.epochs * epoch_steps) {
    throw_user_error(
        "checkpoint {}: its position is {}, behind training.epochs = {} of {} steps; resume with more epochs",
        checkpoint.path().string(), position_, config_.training.epochs, epoch_steps);
  }
  computation_->resume(whole_number(checkpoint, kUnexchanged, 0, {0, config_.exchange.every_steps - 1}));
  unmet_ = computation_->unexchanged();
  if (unexchanged() > 0 && saved_workers != workers()) {
    throw_user_error(
        "checkpoint {} lies between two exchanges (exchange.every_steps), when each of its {} workers had weights of "
        "its own: resume with as many workers, or take an earlier checkpoint",
        checkpoint.path().string(), saved_workers);
  }
  if (saved_workers == workers()) {
    restore_workers(checkpoint);
  } else {
    share_out(checkpoint, saved_workers);
    move_position(checkpoint, saved_workers);
  }
}

// The length of an epoch has to be the same. Other samples are only told, because a damaged file may have been
// replaced.
void Rank::require_same_data(const Checkpoint& checkpoint, int64_t saved_workers) const {
  const std::string trained_on = checkpoint.manifest().values.text(kTrainingSet).value_or("");
  const bool differs = !trained_on.empty() && !data_.train_xxh64.empty() && trained_on != data_.train_xxh64;
  if (differs && communicator_.rank() == 0) {
    spdlog::warn("{} was trained on other data than the config names now; the run goes on with these",
                 checkpoint.path().string());
  }
  const int64_t saved = checkpoint.manifest().values.integer("steps_per_epoch").value_or(0);
  const Sampling sampling = sampling_of(config_, data_.train, saved_workers);
  if (saved >= 1 && saved_workers >= 1 && data_.train.steps_per_epoch(sampling) == saved) return;
  throw_user_error(
      "checkpoint {} is of {} workers and epochs of {} steps, but the training set has {} {}: resume with the same "
      "data and training.batch_per_worker",
      checkpoint.path().string(), saved_workers, saved, data_.train.size(), task_.samples());
}

void Rank::restore_workers(const Checkpoint& checkpoint) {
  for (size_t w = 0; w < memory_.workers.size(); ++w) {
    const int64_t worker = first_worker() + static_cast<int64_t>(w), group = group_of(static_cast<int64_t>(w));
    const SafetensorsFile own = checkpoint.open(worker_file(worker));
    load_tensors(own, memory_.workers[w].statistics);
    const std::vector<RankMemory::MicroBatch>& parts = memory_.workers[w].micro_batches;
    for (size_t p = 0; p < parts.size(); ++p) load_tensors(own, parts[p].state, part_name("state", p) + ".");
    for (const NamedState& state : computation_->state()) {
      if (state.worker == static_cast<int>(w)) load_tensors(own, *state.arena, state.name + ".");
    }
    const auto load_states = [&](const SafetensorsFile& file) {
      for (const NamedState& state : memory_.optimizer->state()) {
        if (state.worker == static_cast<int>(w)) load_tensors(file, *state.arena, state.name + ".");
      }
    };
    if (group == worker) {
      load_states(own);
    } else if (w == 0) {  // the group begins on another rank
      load_states(checkpoint.open(worker_file(group)));
    }
  }
}

// A gradient is divided by the number of workers before it enters u and v, and what workers send is added up: what the
// weights are still owed is the SUM over workers, of v and, as the source of later v, of u. This sum is kept when every
// new worker starts from sum / workers, which is the old mean times old workers / new workers. A group counts as one
// worker.
void Rank::share_out(const Checkpoint& checkpoint, int64_t saved_workers) {
  std::map<std::string, const Arena*> loaded;
  for (const NamedState& state : memory_.optimizer->state()) {
    if (state.worker < 0) continue;
    const auto [first, is_new] = loaded.try_emplace(state.name, state.arena);
    if (is_new) {
      load_share(checkpoint, {state.name, saved_workers, workers(), config_.exchange.workers_per_group}, *state.arena);
    } else {
      device_->copy(state.arena->data(), first->second->data(), state.arena->bytes());
    }
  }
  for (Worker& worker : memory_.workers) {
    device_->copy(worker.statistics.data(), memory_.mean_statistics.data(), memory_.mean_statistics.bytes());
  }
  zero_states();  // the new streams begin at other places of the text
}

// An epoch's order of images does not depend on the workers, so a position in it is a number of samples. Where the new
// step length does not divide this number, the next step begins a little earlier, and no sample is left out. Streams of
// text do depend on the workers: every stream goes on where the same share of its length is done. The order of
// utterances also depends on the workers, because utterances are sorted by global batches: in such an epoch some
// utterances may come twice, and others not at all.
void Rank::move_position(const Checkpoint& checkpoint, int64_t saved_workers) {
  const int64_t batch = task_.samples_per_step(config_);
  const int64_t saved_epoch = checkpoint.manifest().values.integer("steps_per_epoch").value_or(1);
  const int64_t epoch = position_ / saved_epoch;
  const int64_t seen = position_ % saved_epoch * saved_workers * batch;
  const int64_t here = std::min(seen / (workers() * batch), steps_per_epoch_);
  const int64_t repeated = here == steps_per_epoch_ ? 0 : seen - here * workers() * batch;
  position_ = epoch * steps_per_epoch_ + here;
  if (communicator_.rank() != 0) return;
  spdlog::warn(
      "{} is of {} workers, and this run has {}: each starts from an even share of all residuals, whose sum is kept, "
      "and from the mean of the statistics; {} of {} steps of epoch {} count as done, {}",
      checkpoint.path().string(), saved_workers, workers(), here, steps_per_epoch_, epoch + 1,
      task_.after_redistribution(repeated));
}

}  // namespace dgc
