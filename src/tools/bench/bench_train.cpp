#include <chrono>

#include "tasks/task.h"
#include "tools/bench/bench.h"
#include "tools/bench/phases.h"
#include "tools/median.h"
#include "train/agreement.h"
#include "train/rank.h"
#include "train/ranks/failure.h"
#include "train/ranks/launched_config.h"
#include "train/ranks/on_ranks.h"

namespace dgc {

TrainBench bench_train(const Config& given, const BenchOptions& options) {
  const Launch launch = this_launch();
  using Clock = std::chrono::steady_clock;
  Config config = with_launch(given, launch);
  // Most steps of a training come after its warm-up, and after the epochs that begin with the shortest utterances.
  config.optimizer.sparsity.warmup.epochs = 0;
  config.data.speech.buckets.sorted_epochs = 0;
  const Datasets sets = open_sets(config);
  config = task_of(config).completed(config, sets);
  std::vector<double> stretches;
  TrainBench bench;
  const Row facts = start_facts({config, {}, sets.view()});
  on_ranks(config, launch, [&](Backend& backend, Communicator& communicator) {
    Device& device = *backend.device();
    in_unison(communicator, device, [&] { require_agreement(communicator, device, facts); });
    Rank rank(config, sets.view(), backend, communicator);
    const auto run = [&](int steps) {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < steps; ++i) {
        rank.train_step();
        rank.next_metrics();
      }
      rank.finish_steps();
      while (rank.next_metrics()) {
      }
      return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    };
    run(options.warmup);
    const ExchangeTime before = rank.exchange_time().value_or(ExchangeTime{});
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
      const double ms = run(options.steps);
      if (communicator.rank() == 0) stretches.push_back(ms / options.steps);
    }
    const ExchangeTime after = rank.exchange_time().value_or(ExchangeTime{});
    Phases phases(backend);
    const double unrecorded = run(options.steps) / options.steps;
    if (communicator.rank() != 0) return;
    bench.device = backend.device()->name();
    bench.steps_per_epoch = rank.steps_per_epoch();
    bench.ms_unrecorded = unrecorded;
    bench.overlap = {after.steps - before.steps, after.seconds - before.seconds, after.hidden - before.hidden};
    bench.phases = phases.take();
    for (Phases::Phase& phase : bench.phases) phase.milliseconds /= options.steps;
  });
  if (stretches.empty()) return bench;  // rank 0 is in another process
  bench.global_batch = global_batch(config);
  bench.ms_per_step = median(stretches);
  return bench;
}

}  // namespace dgc
