#include <chrono>
#include <ctime>

#include "tasks/task.h"
#include "tools/bench/bench.h"

namespace dgc {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

DataBench bench_data(const Config& given, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Task& task = task_of(given);
  const Datasets sets = task.open(given);
  const Config config = task.completed(given, sets);
  DataBench bench;
  bench.samples = task.samples();
  bench.threads = static_cast<int>(config.data.threads);
  const WorkerBatches mine = worker_batches(config, *sets.train, 0, 0);
  const auto batches = sets.train->training_batches(mine, {.threads = bench.threads, .ahead = 2 * mine.local_workers});
  for (int i = 0; i < bench.threads; ++i) batches->next();
  const Clock::time_point start = Clock::now();
  const double cpu_start = processor_seconds();
  while (bench.seconds < seconds) {
    batches->next();
    bench.count += task.samples_per_step(config) / config.training.accumulate;
    bench.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  bench.cpu_seconds = processor_seconds() - cpu_start;
  return bench;
}

}  // namespace dgc
