#include "train/steps/step_computation.h"

#include <algorithm>
#include <exception>

#include "train/steps/local_steps.h"
#include "train/steps/synchronous_steps.h"
#include "train/steps/uneven_steps.h"

namespace dgc {
namespace {

// Waits for the lanes of all places, whatever happens in one of them, because tasks use memory of the caller's. Then
// throws what the first failed one threw.
void drain(const std::vector<RankMemory::Place>& places) {
  std::exception_ptr failure;
  for (const RankMemory::Place& place : places) {
    try {
      place.lane->drain();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace

StepComputation::StepComputation(const StepContext& context)
    : context_(context),
      terms_(context.config.training.accumulate * context.network.loss().terms(context.network.shape(
                                                      context.network.output(), context.memory.most_rows()))) {}

void StepComputation::begin_with_kept(int local) {
  const RankMemory::Worker& w = worker(local);
  Device& device = *context_.backend.device();
  device.copy(w.next_statistics.data(), w.statistics.data(), w.statistics.bytes());
  for (const RankMemory::MicroBatch& part : w.micro_batches) {
    device.copy(part.next_state.data(), part.state.data(), part.state.bytes());
  }
}

void StepComputation::run_workers(Passes passes, const std::function<Pass(int local)>& pass_of) {
  std::vector<RankMemory::Place>& places = context_.memory.places;
  const auto run = [this, passes](RankMemory::Place& place, int local, const Pass& pass) {
    if (passes == Passes::as_they_are || is_observed()) return run_worker(place, local, pass);
    RecordKey key = {kPasses, static_cast<uint64_t>(local)};
    add_lengths(local, key);
    place.backend.run_recorded(key, [&] { run_worker(place, local, pass); });
  };
  if (places.size() == 1) {
    for (int local = 0; local < local_workers(); ++local) run(places.front(), local, pass_of(local));
    return;
  }
  const Range range(context_.backend, "worker");  // nobody observes the lanes' backends
  for (int local = 0; local < local_workers(); ++local) {
    RankMemory::Place& place = places[static_cast<size_t>(local) % places.size()];
    place.lane->post([run, &place, local, pass = pass_of(local)] { run(place, local, pass); });
  }
  drain(places);
}

void StepComputation::run_worker(RankMemory::Place& place, int local, const Pass& pass) {
  RankMemory::Worker& w = worker(local);
  const Range range(place.backend, "worker");
  place.backend.device()->zero(w.gradient.data(), w.gradient.bytes());
  run_micro_batch(place, local, 0, pass);
  auto* part_loss = static_cast<LossStats*>(place.part_loss.data());
  for (int64_t part = 1; part < context_.config.training.accumulate; ++part) {
    Pass next = pass;
    next.loss = part_loss;
    run_micro_batch(place, local, part, next);
    place.backend.add_loss(part_loss, pass.loss);
  }
}

// The passes of a worker add up in its gradient, so the gradients of parameters are complete only in the last one.
void StepComputation::run_micro_batch(RankMemory::Place& place, int local, int64_t part, const Pass& pass) {
  RankMemory& memory = context_.memory;
  RankMemory::Worker& w = worker(local);
  RankMemory::MicroBatch& own = w.micro_batches[static_cast<size_t>(part)];
  const int64_t rows = memory.most_rows(), parts = context_.config.training.accumulate;
  const int64_t number = context_.communicator.rank() * std::ssize(memory.workers) + local;
  const RunContext run{.training = true,
                       .seed = context_.config.seed,
                       .control = pass.control,
                       .samples_per_step = static_cast<uint64_t>(rows * parts * memory.record.workers()),
                       .first_sample = static_cast<uint64_t>((number * parts + part) * rows),
                       .state = &own.next_state,
                       .lengths = own.input.lengths()};
  Executor& executor = place.executors->for_rows(own.input.rows());
  const View x = own.input.x(executor.batch());
  executor.forward(pass.weights, w.next_statistics, x, run);
  executor.loss(pass.weights, w.gradient,
                {.labels = own.input.labels(),
                 .stats = &pass.loss->loss,
                 .gradient_scale = 1.f / static_cast<float>(terms_ * context_.config.exchange.workers_per_group),
                 .control = pass.control,
                 .lengths = run.lengths});
  std::function<void(int)> ready;
  if (pass.ready && part == parts - 1) ready = [&](int first) { pass.ready(trained_before(first)); };
  executor.backward(pass.weights, w.gradient, x, run, ready);
}

void StepComputation::exchange(std::span<float* const> gradients) {
  RankMemory& memory = context_.memory;
  {
    const Range range(context_.backend, "judge");
    memory.record.measure(gradients, memory.trained.extent());
  }
  memory.optimizer->settle();
  {
    const Range range(context_.backend, "judge");
    memory.record.judge();
  }
  memory.optimizer->step({.gradients = gradients, .weights = memory.weights, .record = memory.record});
  keep_results();
}

void StepComputation::keep_results() {
  for (const RankMemory::Worker& w : context_.memory.workers) {
    keep_unless_skipped(w.next_statistics, w.statistics);
    // The values that made a gradient infinite may be in the state too, and would stay there.
    for (const RankMemory::MicroBatch& part : w.micro_batches) keep_unless_skipped(part.next_state, part.state);
  }
}

void StepComputation::keep_unless_skipped(const Arena& next, const Arena& arena) {
  const Shape all{arena.extent()};
  context_.backend.copy_unless_skipped(context_.memory.record.control(), {next.data(), all}, {arena.data(), all});
}

bool StepComputation::exchanges_are_recordable() const {
  const Communicator& communicator = context_.communicator;
  return communicator.recordable() && (communicator.size() == 1 || passes_are_alike());
}

bool StepComputation::passes_are_alike() const { return context_.memory.places.front().executors->are_one(); }

void StepComputation::add_lengths(int local, RecordKey& key) const {
  Executors& executors = *context_.memory.places.front().executors;
  for (const RankMemory::MicroBatch& part : worker(local).micro_batches) {
    key.push_back(static_cast<uint64_t>(executors.for_rows(part.input.rows()).batch()));
  }
}

void StepComputation::queue_exchange(const RecordKey& key, const std::function<void()>& body) {
  if (!exchanges_are_recordable() || is_observed()) return body();
  if (context_.communicator.size() == 1) return context_.backend.run_recorded(key, body);
  context_.backend.run_recorded_together(key, body);
}

void StepComputation::queue_alone(const RecordKey& key, const std::function<void()>& body) {
  if (is_observed()) return body();
  context_.backend.run_recorded(key, body);
}

int StepComputation::trained_before(int param) const {
  const std::span<const ParamSpec> before(context_.network.params().data(), static_cast<size_t>(param));
  return static_cast<int>(std::ranges::count(before, false, &ParamSpec::frozen));
}

std::unique_ptr<StepComputation> make_step_computation(const StepContext& context) {
  const ExchangeOptions& exchange = context.config.exchange;
  if (exchange.wait && context.communicator.mail() != nullptr) return std::make_unique<UnevenSteps>(context);
  if (exchange.every_steps > 1) return std::make_unique<LocalSteps>(context);
  return std::make_unique<SynchronousSteps>(context);
}

}  // namespace dgc
