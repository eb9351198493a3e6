#pragma once

#include <vector>

#include "kernels/backend.h"
#include "tests/fake_cuda/weights.h"
#include "tests/support/rank_steps.h"

namespace dgc::test {

struct Silent : RangeObserver {
  void begin(const char*) override {}
  void end() override {}
};

struct Trained {
  std::vector<float> weights;
  std::vector<double> losses;
};

// Rank 0's weights after some steps. A step that is observed is not recorded.
inline Trained trained(const Config& config, int steps, bool recorded = true) {
  Trained result;
  Silent observer;
  const Datasets sets = open_sets(config);
  const Config complete = task_of(config).completed(config, sets);
  on_ranks(complete, {}, [&](Backend& backend, Communicator& communicator) {
    if (!recorded) backend.observer = &observer;
    Rank rank(complete, sets.view(), backend, communicator);
    const auto take = [&] {
      while (const auto metrics = rank.next_metrics()) {
        if (communicator.rank() == 0) result.losses.push_back(metrics->loss);
      }
    };
    for (int i = 0; i < steps; ++i) {
      rank.train_step();
      take();
    }
    rank.finish_steps();
    take();
    if (communicator.rank() == 0) result.weights = weights_of(rank);
    backend.observer = nullptr;
  });
  return result;
}

}  // namespace dgc::test
