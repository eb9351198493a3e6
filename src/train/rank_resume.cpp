// The methods of Rank that read a checkpoint, or a file of weights.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <optional>

#include "run/conv_plans_file.h"
#include "run/vocabulary_file.h"
#include "tensor/counted.h"
#include "tensor/errors.h"
#include "train/rank.h"
#include "train/redistribute.h"
#include "train/saved_tensors.h"
#include "train/weights_file.h"

namespace dgc {

void Rank::start_from(const InitialWeights& initial) {
  initial.load(memory_.weights, memory_.mean_statistics);
  for (const Worker& worker : memory_.workers) {
    device_->copy(worker.statistics.data(), memory_.mean_statistics.data(), memory_.mean_statistics.bytes());
  }
}

void Rank::restore(const Checkpoint& checkpoint) {
  StepControl control = memory_.record.read_control();
  state_ = read_run_state(checkpoint, control.loss_scale);
  if (data_.vocabulary != nullptr) require_same_vocabulary(checkpoint, *data_.vocabulary);
  require_same_conv_plans(checkpoint, config_, conv_plans_xxh64_);
  require_same_arithmetic(checkpoint);
  require_same_data(checkpoint);
  require_way_on(checkpoint);
  load_weights(checkpoint, memory_.weights, memory_.mean_statistics, network_.ties());
  const SafetensorsFile shared = checkpoint.open(kSharedFile);
  for (const NamedState& state : memory_.optimizer->state()) {
    if (state.worker < 0) load_tensors(shared, *state.arena, state.name + ".");
  }
  control.loss_scale = state_.loss_scale;
  control.good_steps = static_cast<uint32_t>(state_.good_steps);
  control.skip = state_.skipped_last ? 1 : 0;
  memory_.record.restore_control(control);
  // A run that is not sound skips steps, or its newest evaluation gave no finite loss.
  finite_loss_ = state_.skipped.in_row > 0 || state_.sound;
  computation_->resume(state_.unexchanged);
  unmet_ = state_.unexchanged;
  if (state_.workers == workers()) {
    restore_workers(checkpoint);
  } else {
    share_out(checkpoint);
    move_position(checkpoint);
  }
}

// Throws UserError where the config ends the run before the checkpoint, or another number of workers or
// exchange.every_steps cannot go on inside a round of local steps.
void Rank::require_way_on(const Checkpoint& checkpoint) const {
  if (state_.position > config_.training.epochs * state_.steps_per_epoch) {
    const double epoch = static_cast<double>(state_.position) / static_cast<double>(state_.steps_per_epoch);
    throw_user_error("checkpoint {}: it is at epoch {:.7g}, and training.epochs is {}; resume with more epochs",
                     checkpoint.path().string(), epoch, config_.training.epochs);
  }
  require_within(checkpoint.path().string(), "unexchanged_steps", state_.unexchanged,
                 {0, config_.exchange.every_steps - 1});
  if (state_.unexchanged > 0 && state_.workers != workers()) {
    throw_user_error(
        "checkpoint {} lies between two exchanges (exchange.every_steps), when each of its {} workers had weights of "
        "its own: resume with as many workers, or take an earlier checkpoint",
        checkpoint.path().string(), state_.workers);
  }
}

// A GPU rounds otherwise than a processor, another number of threads splits sums in other places, and a library has
// other code for another kind of machine. What the config leaves to the machine is only told, because a run may have to
// move. Only rank 0 looks, as a launcher may give each rank another number of cores.
void Rank::require_same_arithmetic(const Checkpoint& checkpoint) const {
  const int64_t saved = state_.threads, now = backend_.threads();
  const std::string path = checkpoint.path().string();
  if (communicator_.rank() != 0 || saved < 0) return;
  if ((saved == 0) != (now == 0)) {
    throw_user_error(
        "{} was made on a {}, and this run would go on on {}, which rounds otherwise: set device to \"{}\"", path,
        saved == 0 ? "GPU" : "processor", backend_.name(), saved == 0 ? "cuda:0" : "cpu");
  }
  if (state_.workers != workers()) return;  // the bits are others anyway
  const std::string here = backend_.arithmetic();
  const std::string made_with = checkpoint.manifest().values.text(kArithmetic).value_or(here);
  if (made_with != here) {
    spdlog::warn("{} was made with {}, and the run goes on with {}, which may round otherwise", path, made_with, here);
  }
  if (saved == now) return;
  const std::string differs =
      fmt::format("{} was made with {} in each rank, and this run has {}, which rounds sums otherwise", path,
                  counted(saved, "compute thread"), now);
  if (config_.threads > 0) throw_user_error("{}: set threads to {}", differs, saved);
  spdlog::warn("{}; it goes on, and --set threads={} would keep the bits", differs, saved);
}

// The length of an epoch has to be the same. Other samples are only told, because a damaged file may have been
// replaced.
void Rank::require_same_data(const Checkpoint& checkpoint) const {
  const int64_t saved = state_.steps_per_epoch, saved_workers = state_.workers;
  const std::string trained_on = checkpoint.manifest().values.text(kTrainingSet).value_or("");
  const bool differs = !trained_on.empty() && !data_.train_xxh64.empty() && trained_on != data_.train_xxh64;
  if (differs && communicator_.rank() == 0) {
    spdlog::warn("{} was trained on other data than the config names now; the run goes on with the config's",
                 checkpoint.path().string());
  }
  const Sampling sampling = sampling_of(config_, data_.train, saved_workers);
  if (saved >= 1 && saved_workers >= 1 && data_.train.steps_per_epoch(sampling) == saved) return;
  throw_user_error(
      "checkpoint {} is of {} and epochs of {}, but the training set has {} {}: resume with the same data and "
      "training.batch_per_worker",
      checkpoint.path().string(), counted(saved_workers, "worker"), counted(saved, "step"), data_.train.size(),
      task_.samples());
}

void Rank::restore_workers(const Checkpoint& checkpoint) {
  for (int64_t local = 0; local < std::ssize(memory_.workers); ++local) {
    const int64_t worker = first_worker() + local, group = first_of_group(config_, worker);
    const SafetensorsFile own = checkpoint.open(worker_file(worker));
    std::optional<SafetensorsFile> first;  // where the group begins on another rank
    if (group != worker && local == 0) first = checkpoint.open(worker_file(group));
    for (const WorkerState& state : states_of(memory_, *computation_, local)) {
      if (!state.of_group || group == worker) {
        load_tensors(own, *state.arena, state.prefix);
      } else if (first) {
        load_tensors(*first, *state.arena, state.prefix);
      }
    }
  }
}

// A gradient is divided by the number of workers before it enters u and v, and what workers send is added up: what the
// weights are still owed is the SUM over workers, of v and, as the source of later v, of u. This sum is kept when every
// new worker starts from sum / workers, which is the old mean times old workers / new workers. A group counts as one
// worker.
void Rank::share_out(const Checkpoint& checkpoint) {
  std::map<std::string, const Arena*> loaded;
  for (const NamedState& state : memory_.optimizer->state()) {
    if (state.worker < 0) continue;
    const auto [first, is_new] = loaded.try_emplace(state.name, state.arena);
    if (is_new) {
      load_share(checkpoint, {state.name, state_.workers, workers(), config_.exchange.workers_per_group}, *state.arena);
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
void Rank::move_position(const Checkpoint& checkpoint) {
  const int64_t saved_workers = state_.workers, saved_epoch = state_.steps_per_epoch;
  const int64_t batch = task_.samples_per_step(config_);
  const int64_t epoch = state_.position / saved_epoch;
  const int64_t seen = state_.position % saved_epoch * saved_workers * batch;
  // What follows an epoch, such as its evaluation, follows a step of its own.
  const int64_t here = std::min(seen / (workers() * batch), steps_per_epoch_ - 1);
  const int64_t repeated = seen - here * workers() * batch;
  state_.position = epoch * steps_per_epoch_ + here;
  if (communicator_.rank() != 0) return;
  spdlog::warn(
      "{} is of {}, and this run has {}: each starts from an even share of all residuals, whose sum is kept, and "
      "from the mean of the statistics; {} of {} steps of epoch {} count as done, {}",
      checkpoint.path().string(), counted(saved_workers, "worker"), workers(), here, steps_per_epoch_, epoch + 1,
      task_.after_redistribution(repeated));
}

}  // namespace dgc
