#include "train/step_computation.h"

#include <algorithm>
#include <span>

namespace dgc {

StepComputation::StepComputation(const Config& config, Backend& backend, RankMemory& memory, const Network& network,
                                 int first_worker, int workers)
    : config_(config),
      backend_(backend),
      memory_(memory),
      network_(network),
      first_worker_(first_worker),
      workers_(workers),
      terms_(network.loss().terms(network.shape(network.output(), memory.executors.most_rows()))) {}

void StepComputation::queue() {
  std::vector<float*> own;
  for (const RankMemory::Worker& worker : memory_.workers) own.push_back(worker.gradient.data());
  memory_.optimizer->begin({.gradients = own, .weights = memory_.weights, .record = memory_.record});
  for (int local = 0; local < static_cast<int>(memory_.workers.size()); ++local) run_worker(local);
  const std::span<float* const> gradients = memory_.optimizer->combine(own);
  {
    const Range range(backend_, "judge");
    memory_.record.measure(gradients, memory_.trained.extent());
  }
  memory_.optimizer->settle();
  {
    const Range range(backend_, "judge");
    memory_.record.judge();
  }
  memory_.optimizer->step({.gradients = gradients, .weights = memory_.weights, .record = memory_.record});
  for (RankMemory::Worker& worker : memory_.workers) {
    keep_unless_skipped(worker.next_statistics, worker.statistics);
    // The values that made a gradient infinite may be in the state too, and would stay there.
    keep_unless_skipped(worker.next_state, worker.state);
  }
}

void StepComputation::keep_unless_skipped(const Arena& next, const Arena& arena) {
  const Shape all{arena.extent()};
  backend_.copy_unless_skipped(memory_.record.control(), {next.data(), all}, {arena.data(), all});
}

void StepComputation::run_worker(int local) {
  RankMemory::Worker& worker = memory_.workers[static_cast<size_t>(local)];
  const Range range(backend_, "worker");
  backend_.device()->zero(worker.gradient.data(), worker.gradient.bytes());
  const Arena& statistics = worker.next_statistics;
  backend_.device()->copy(statistics.data(), worker.statistics.data(), statistics.bytes());
  backend_.device()->copy(worker.next_state.data(), worker.state.data(), worker.state.bytes());

  const int64_t rows = memory_.executors.most_rows();
  const RunContext run{.training = true,
                       .seed = config_.seed,
                       .control = memory_.record.control(),
                       .samples_per_step = static_cast<uint64_t>(rows * workers_),
                       .first_sample = static_cast<uint64_t>(first_worker_ + local) * static_cast<uint64_t>(rows),
                       .state = &worker.next_state,
                       .lengths = worker.input.lengths()};
  Executor& executor = memory_.executors.for_rows(worker.input.rows());
  const View x = worker.input.x(executor.batch());
  executor.forward(memory_.weights, statistics, x, run);
  executor.loss(memory_.weights, worker.gradient,
                {.labels = worker.input.labels(),
                 .stats = &memory_.record.local(local)->loss.loss,
                 .gradient_scale = 1.f / static_cast<float>(terms_ * config_.exchange.workers_per_group),
                 .control = memory_.record.control(),
                 .lengths = run.lengths});
  executor.backward(memory_.weights, worker.gradient, x, run,
                    [&](int first, int) { memory_.optimizer->ready(local, trained_before(first)); });
}

int StepComputation::trained_before(int param) const {
  const std::span<const ParamSpec> before(network_.params().data(), static_cast<size_t>(param));
  return static_cast<int>(std::ranges::count(before, false, &ParamSpec::frozen));
}

}  // namespace dgc
