#include "train/step_computation.h"

#include <algorithm>

#include "train/local_steps.h"
#include "train/synchronous_steps.h"

namespace dgc {

StepComputation::StepComputation(const StepContext& context)
    : context_(context),
      terms_(context.network.loss().terms(
          context.network.shape(context.network.output(), context.memory.executors.most_rows()))) {}

void StepComputation::begin_with_kept(int local) {
  const RankMemory::Worker& w = worker(local);
  Device& device = *context_.backend.device();
  device.copy(w.next_statistics.data(), w.statistics.data(), w.statistics.bytes());
  device.copy(w.next_state.data(), w.state.data(), w.state.bytes());
}

void StepComputation::run_worker(int local, const Pass& pass) {
  RankMemory& memory = context_.memory;
  RankMemory::Worker& w = worker(local);
  const Range range(context_.backend, "worker");
  context_.backend.device()->zero(w.gradient.data(), w.gradient.bytes());

  const int64_t rows = memory.executors.most_rows();
  const auto rank = static_cast<uint64_t>(context_.communicator.rank()), workers = memory.workers.size();
  const RunContext run{.training = true,
                       .seed = context_.config.seed,
                       .control = pass.control,
                       .samples_per_step = static_cast<uint64_t>(rows * memory.record.workers()),
                       .first_sample = (rank * workers + static_cast<uint64_t>(local)) * static_cast<uint64_t>(rows),
                       .state = &w.next_state,
                       .lengths = w.input.lengths()};
  Executor& executor = memory.executors.for_rows(w.input.rows());
  const View x = w.input.x(executor.batch());
  executor.forward(pass.weights, w.next_statistics, x, run);
  executor.loss(pass.weights, w.gradient,
                {.labels = w.input.labels(),
                 .stats = &pass.loss->loss,
                 .gradient_scale = 1.f / static_cast<float>(terms_ * context_.config.exchange.workers_per_group),
                 .control = pass.control,
                 .lengths = run.lengths});
  executor.backward(pass.weights, w.gradient, x, run, [&](int first, int) { pass.ready(trained_before(first)); });
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
  for (const RankMemory::Worker& w : memory.workers) {
    keep_unless_skipped(w.next_statistics, w.statistics);
    // The values that made a gradient infinite may be in the state too, and would stay there.
    keep_unless_skipped(w.next_state, w.state);
  }
}

void StepComputation::keep_unless_skipped(const Arena& next, const Arena& arena) {
  const Shape all{arena.extent()};
  context_.backend.copy_unless_skipped(context_.memory.record.control(), {next.data(), all}, {arena.data(), all});
}

// With executors for several lengths, each step differs, and records of all these steps would fill the memory.
bool StepComputation::passes_are_alike() const { return context_.memory.executors.are_one(); }

void StepComputation::queue_recorded(bool alike, uint64_t key, const std::function<void()>& body) {
  if (alike && context_.backend.observer == nullptr) return context_.backend.run_recorded(key, body);
  body();
}

int StepComputation::trained_before(int param) const {
  const std::span<const ParamSpec> before(context_.network.params().data(), static_cast<size_t>(param));
  return static_cast<int>(std::ranges::count(before, false, &ParamSpec::frozen));
}

std::unique_ptr<StepComputation> make_step_computation(const StepContext& context) {
  if (context.config.exchange.every_steps > 1) return std::make_unique<LocalSteps>(context);
  return std::make_unique<SynchronousSteps>(context);
}

}  // namespace dgc
