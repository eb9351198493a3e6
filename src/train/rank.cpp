#include "train/rank.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/model_types.h"
#include "run/conv_plans_file.h"
#include "tasks/make.h"
#include "tensor/errors.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"
#include "train/ranks/shared_problem.h"

namespace dgc {
namespace {

constexpr float kFirstLossScale = 65536;  // for fp16; the first steps halve a scale that is too large
constexpr uint32_t kLossScaleEvery = 2000;

StepControl first_control(Precision precision) {
  StepControl control;
  if (precision == Precision::fp16) {
    control.loss_scale = kFirstLossScale;
    control.scale_every = kLossScaleEvery;
  }
  return control;
}

// A perplexity, as exp(loss), may be infinite where the loss is not.
bool is_finite(const EvalMetrics& metrics, const Metric* metric) {
  return !metrics.measures.has(*metric) || std::isfinite(metrics.measures[*metric]);
}

}  // namespace

void check_fits(const Config& config, const Network& network, const Dataset& train) {
  task_of(config).require_classes(config, network.classes(), train);
  task_of(config).require_learnable(network, train);
  static_cast<void>(train.steps_per_epoch(sampling_of(config, train)));  // throws when the set is too small
}

Rank::Rank(const Config& config, const DataView& data, Backend& backend, Communicator& communicator)
    : config_(config),
      conv_plans_xxh64_(conv_plans_xxh64(config)),
      task_(task_of(config)),
      data_(data),
      communicator_(communicator),
      backend_(backend),
      device_(backend.device()),
      network_(make_network(config.model, data.train.sample())),
      memory_(config, network_, batch_rows(config, data.train), data.train.most_labels(), backend, communicator),
      computation_(make_step_computation({config, backend, communicator, memory_, network_})),
      lr_(make_lr_schedule(config)),
      sparsity_(config.optimizer.sparsity) {
  DGC_CHECK(communicator.size() == config.ranks, "a rank reads its share of the data, and others must read the rest");
  check_fits(config, network_, data.train);
  initialize(memory_.weights, config.seed);
  initialize(memory_.mean_statistics, config.seed);
  for (const Worker& worker : memory_.workers) initialize(worker.statistics, config.seed);
  memory_.record.restore_control(first_control(config.precision));
  const auto evaluator = [&](const Dataset& set, Split split) {
    Network network = make_network(config.model, set.sample());
    Evaluator::Scored scored{set, task_.make_scorer(set, network, split, {})};
    return std::make_unique<Evaluator>(std::move(network), backend_, std::move(scored), config.training.eval_batch,
                                       static_cast<int>(config.data.threads), activation_type(config, backend_));
  };
  test_evaluator_ = evaluator(data.test, Split::test);
  if (data.valid != nullptr) valid_evaluator_ = evaluator(*data.valid, Split::valid);
  memory_.share_activations({&test_evaluator_->memory(), valid_evaluator_ ? &valid_evaluator_->memory() : nullptr});
  // The flush has the largest messages of a run. If they do not fit, that must show before the first step, not behind
  // the last one.
  if (config.optimizer.flush_at_end) memory_.optimizer->prepare_flush();
  steps_per_epoch_ = data.train.steps_per_epoch(sampling_of(config, data.train));
}

// One step: batches -> gradients -> the decision whether to skip -> the exchange -> weights.
void Rank::train_step() {
  state_.owes_evaluation = false;
  const bool own = !computation_->behind();
  if (own) begin_own_step();
  const Rates rates = rates_at(state_.position);
  const int64_t exchanged =
      computation_->queue({.input = {static_cast<uint64_t>(state_.step), static_cast<float>(rates.learning_rate),
                                     interrupted() || will_lack()},
                           .sparsity = rates.sparsity,
                           .must_share = next_step_ends_part(),
                           .everyone = own && everyone_must_come()});

  const int64_t made = own ? 1 : exchanged;
  state_.step += made;
  state_.position += made;
  unmet_ += made;
  if (!own) zero_states();  // a rank that was late begins a text's streams again
  met_ = 0;
  if (exchanged > 0) {
    const Attendance attendance = computation_->attendance(exchanged);
    if (attendance.everyone) met_ = std::exchange(unmet_, 0);
    report_later(exchanged, attendance);
  }
  if (computation_->behind()) {
    batches_.reset();
  } else {
    try {
      stage_batches();
    } catch (...) {
      lack_ = std::current_exception();
    }
  }
}

Rank::Rates Rank::rates_at(int64_t position) const {
  const double epoch = epoch_at(position);
  return {learning_rate_at(lr_, epoch, state_.plateau),
          compresses(config_.optimizer.type) ? sparsity_at(sparsity_, epoch) : 0};
}

void Rank::begin_own_step() {
  if (lack_) std::rethrow_exception(lack_);
  if (!batches_) stage_batches();
  if (state_.position % steps_per_epoch_ == 0) zero_states();  // in a new epoch each stream of a text begins again
  memory_.for_each_micro_batch([](RankMemory::MicroBatch& part) { part.input.arrive(); });
}

Rank::Planned Rank::planned(int64_t ahead, int64_t steps) const {
  const int64_t position = state_.position + ahead;
  const CheckpointOptions& checkpoint = config_.checkpoint;
  return {.evaluates = due(position, config_.training.eval_every_epochs * steps_per_epoch_),
          .saves = due(position, checkpoint.every_epochs * steps_per_epoch_) ||
                   due(state_.step + ahead, checkpoint.every_steps.value_or(0), steps)};
}

// An epoch, or all that is to be trained.
bool Rank::next_step_ends_part() const {
  return (state_.position + 1) % steps_per_epoch_ == 0 || config_.training.max_steps == state_.step + 1;
}

// Where ranks may be late, none may be so in an exchange behind which all do something together, nor where the next
// round has another sparsity, as the messages of the late would have another size.
bool Rank::everyone_must_come() const {
  return next_step_ends_part() || planned(1, computation_->unexchanged() + 1).anything() ||
         rates_at(state_.position).sparsity != rates_at(state_.position + config_.exchange.every_steps).sparsity;
}

void Rank::zero_states() {
  memory_.for_each_micro_batch(
      [&](RankMemory::MicroBatch& part) { device_->zero(part.state.data(), part.state.bytes()); });
}

void Rank::report_later(int64_t local_steps, const Attendance& attendance) {
  const Rates rates = rates_at(state_.position - 1);
  StepMetrics metrics;
  metrics.learning_rate = rates.learning_rate;
  metrics.sparsity = rates.sparsity;
  metrics.step = state_.step;
  metrics.epoch = epoch();
  const StepBytes bytes = memory_.optimizer->bytes();
  metrics.transport = travel_name(bytes.travel);
  metrics.sent_bytes = bytes.sent;
  metrics.local_steps = local_steps;
  metrics.dense_bytes = local_steps * bytes.dense;
  metrics.group_bytes = bytes.in_group;
  metrics.absent_ranks = attendance.absent;
  metrics.present = static_cast<double>(attendance.worker_steps) / static_cast<double>(local_steps * workers());
  untold_.push_back({metrics, attendance.worker_steps});
  lag_ = most_lag();
}

// Ranks that may be late read in each report whether they have to stop together.
size_t Rank::most_lag() const { return device_->queues() && !config_.exchange.wait ? StepRecord::kQueued - 1 : 0; }

// Whether the loader has met an error in the batches up to those of the first step before which the other ranks can
// still stop when they learn of it with the step that begins now.
bool Rank::will_lack() const {
  if (!batches_) return false;
  const size_t batches_of_step = memory_.workers.size() * memory_.workers.front().micro_batches.size();
  return batches_->error_within(static_cast<int64_t>((most_lag() + 1) * batches_of_step)) != nullptr;
}

// Uploads the next step's batches while the device computes.
void Rank::stage_batches() {
  if (!batches_) {
    const WorkerBatches mine = worker_batches(config_, data_.train, first_worker(), state_.position);
    batches_ = data_.train.training_batches(
        mine, {.threads = static_cast<int>(config_.data.threads), .ahead = 2 * mine.local_workers});
  }
  memory_.for_each_micro_batch([&](RankMemory::MicroBatch& part) {
    const Batch& batch = *batches_->next();
    tell_bad_examples(batch);
    part.input.stage(batch);
  });
}

// Warns about each bad example once, however often batches contain it.
void Rank::tell_bad_examples(const Batch& batch) {
  for (const std::string& bad : batch.bad_examples) {
    if (told_.insert(bad).second) spdlog::warn("left out of the training: {}", bad);
  }
}

std::optional<StepMetrics> Rank::next_metrics() {
  if (untold_.size() <= lag_) return std::nullopt;
  const StepResult result = memory_.record.take();
  auto [metrics, worker_steps] = untold_.front();
  untold_.pop_front();
  metrics.loss = result.loss.loss / static_cast<double>(computation_->terms() * worker_steps);
  metrics.grad_norm = result.grad_norm;
  metrics.skipped = result.skipped;
  metrics.left_out = static_cast<int64_t>(network_.loss().left_out(result.loss));
  state_.skipped =
      result.skipped ? Skipped{metrics.step, state_.skipped.in_row + metrics.local_steps, state_.skipped.exchanges + 1}
                     : Skipped{.step = metrics.step};
  asked_to_stop_ = result.stop;
  return metrics;
}

void Rank::average_statistics() {
  if (memory_.statistics.extent() == 0) return;
  std::vector<float*> local;
  for (const Worker& worker : memory_.workers) local.push_back(worker.statistics.data());
  std::vector<float> mean(static_cast<size_t>(memory_.statistics.extent()));
  copy_out(communicator_, *device_, std::as_writable_bytes(std::span(mean)), memory_.statistics_sum.run(local));
  for (float& value : mean) value /= static_cast<float>(workers());
  device_->copy_in(memory_.mean_statistics.data(), mean.data(), memory_.mean_statistics.bytes());
}

Measures Rank::run(Evaluator& evaluator) {
  const int ranks = evaluator.most_shares(communicator_.size());
  const size_t allocations = device_->allocations();
  Evaluator::Share own;
  bool stopped = false;
  in_unison(communicator_, *device_, [&] {
    if (communicator_.rank() >= ranks) return;
    try {
      // A share of a large set takes minutes, in which a rank shall notice that another one is gone.
      own = evaluator.count(memory_.weights, memory_.mean_statistics, communicator_.rank(), ranks,
                            [this](const Batch&, ConstView) { communicator_.check(); });
    } catch (const Interrupted&) {
      stopped = true;
    }
  });
  struct Told {
    int64_t stopped = 0, allocated = 0, batches = 0;
  };
  const Told mine{stopped, device_->allocations() != allocations, std::ssize(own.counts)};
  const std::vector<Told> told = gather_host<Told>(communicator_, *device_, {&mine, 1});
  const auto any = [&](int64_t Told::*what) {
    return std::ranges::any_of(told, [&](const Told& t) { return t.*what; });
  };
  if (any(&Told::stopped)) throw Interrupted();
  // All ranks record exchanges in the same step (StepComputation::exchanges_are_recordable).
  if (any(&Told::allocated)) device_->invalidate_recordings();

  const auto most = static_cast<size_t>(std::ranges::max(told, {}, &Told::batches).batches);
  own.counts.resize(most);
  const std::vector<Counts> counts = gather_host<Counts>(communicator_, *device_, own.counts);
  const std::vector<std::vector<std::string>> left_out = told_by_all(communicator_, *device_, own.left_out);
  std::vector<Evaluator::Share> shares;
  for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank) {
    const auto begin = counts.begin() + static_cast<int64_t>(rank * most);
    shares.push_back({{begin, begin + told[rank].batches}, left_out[rank]});
  }
  Measures measures = evaluator.measures(shares);
  if (communicator_.rank() == 0) Evaluator::tell_left_out(shares);
  return measures;
}

EvalMetrics Rank::evaluate() {
  DGC_CHECK(untold_.empty(), "finish_steps() first");
  average_statistics();
  EvalMetrics metrics{
      .step = state_.step, .epoch = epoch(), .measures = run(valid_evaluator_ ? *valid_evaluator_ : *test_evaluator_)};
  finite_loss_ = std::isfinite(metrics.steering_loss()) && is_finite(metrics, task_of(config_).compared().curve);
  state_.owes_evaluation = false;
  return metrics;
}

EvalMetrics Rank::evaluate_all() {
  EvalMetrics metrics = evaluate();
  if (valid_evaluator_) metrics.measures.set(run(*test_evaluator_));
  finite_loss_ = finite_loss_ && std::isfinite(metrics.measures[kTestLoss]) &&
                 is_finite(metrics, task_of(config_).compared().outcome);
  return metrics;
}

void Rank::adapt_learning_rate(const EvalMetrics& eval) {
  state_.plateau = plateau_after(lr_, state_.plateau, eval.steering_loss());
}

void Rank::compare_with_best(const EvalMetrics& eval) { state_.best.add(eval.step, eval.steering_loss()); }

void Rank::flush() {
  // The flush uses the last step's rate: where a schedule ends at zero, the next step's rate would drop what is sent.
  const double scheduled = rates_at(std::max<int64_t>(state_.position - 1, 0)).learning_rate;
  const double rate = computation_->exchange_rate(scheduled);
  memory_.record.begin({.step = static_cast<uint64_t>(state_.step), .lr = static_cast<float>(rate)});
  memory_.optimizer->flush({.gradients = {}, .weights = memory_.weights, .record = memory_.record});
  memory_.record.finish();
  memory_.record.take();
  state_.flushed = true;
}

}  // namespace dgc
