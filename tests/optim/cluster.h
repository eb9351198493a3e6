#pragma once

#include <catch.hpp>
#include <cmath>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "optim/dgc/dgc.h"
#include "tensor/rng.h"

// N workers on any number of ranks that train the same small "model", with gradients that depend on (worker, step,
// weights) alone.
namespace dgc::test {

inline const ParamLayout& small_layout() {
  static const ParamLayout layout({{"conv.weight", {8, 4, 3, 3}, {Init::Kind::normal, 0.5f}},
                                   {"norm.weight", {8}, {Init::Kind::constant, 1.f}},
                                   {"fc.weight", {30, 41}, {Init::Kind::normal, 0.5f}},
                                   {"fc.bias", {30}, {Init::Kind::constant, 0.f}}});
  return layout;
}

inline float gradient_at(int worker, uint64_t step, int64_t element, float w) {
  const Philox noise(17, rng_stream("gradient", static_cast<uint64_t>(worker)));
  return noise.normal(step * 100000 + static_cast<uint64_t>(element)) + 0.1f * w;
}

// Every element of every tensor: body(element of the arena).
inline void for_elements(const ParamLayout& layout, const std::function<void(int64_t)>& body) {
  for (int i = 0; i < layout.size(); ++i) {
    for (int64_t e = 0; e < layout.numel(i); ++e) body(layout.offset(i) + e);
  }
}

inline std::vector<float> to_vector(const Arena& arena) {
  std::vector<float> values(static_cast<size_t>(arena.extent()));
  arena.device().copy_out(values.data(), arena.data(), arena.bytes());
  return values;
}

// Every element of every tensor becomes value(element of the arena); the gaps between them become zero.
inline void fill(const Arena& arena, const std::function<float(int64_t)>& value) {
  std::vector<float> values(static_cast<size_t>(arena.extent()));
  for_elements(arena.layout(), [&](int64_t e) { values[static_cast<size_t>(e)] = value(e); });
  arena.device().copy_in(arena.data(), values.data(), arena.bytes());
}

// One whole step, as a trainer makes it, and what came of it.
struct StepReport {
  double grad_norm = 0;
  bool skipped = false;
  StepBytes bytes;
};

struct Stepper {
  Optimizer& optimizer;
  StepRecord& record;
  const Arena& weights;
  std::span<float* const> gradients;

  StepReport step(uint64_t number, float lr, double sparsity) const {
    optimizer.prepare(sparsity);
    record.begin({number, lr, false});
    const StepArgs args{gradients, weights, record};
    optimizer.begin(args);
    for (int local = 0; local < static_cast<int>(gradients.size()); ++local) {
      for (int param = weights.layout().size(); param-- > 0;) optimizer.ready(local, param);
    }
    const auto combined = optimizer.combine(gradients);
    record.measure(combined, weights.extent());
    optimizer.settle();
    record.judge();
    optimizer.step({combined, weights, record});
    return finish();
  }
  StepReport flush(uint64_t number, float lr) const {
    record.begin({number, lr, false});
    optimizer.flush({gradients, weights, record});
    return finish();
  }
  StepReport finish() const {
    record.finish();
    const StepResult result = record.take();
    return {result.grad_norm, result.skipped, optimizer.bytes()};
  }
};

struct ClusterOptions {
  std::function<std::unique_ptr<Backend>()> backend = [] { return make_cpu_backend(1); };  // of each rank
  int ranks = 1;
  int local_workers = 1;
  int steps = 5;
  float lr = 0.1f;
  std::function<double(uint64_t step)> sparsity = [](uint64_t) { return 0.99; };
  std::function<std::unique_ptr<Optimizer>(const OptimizerContext&)> make;
  std::function<float(int worker, uint64_t step, int64_t element, float w)> gradient = gradient_at;
  // After each step; called by one rank at a time.
  std::function<void(int rank, uint64_t step, Optimizer&, const Arena& weights, const StepReport&)> after;
};

// How workers share ranks.
struct Spread {
  int ranks;
  int local_workers;
};

// Seven steps of DGC.
inline ClusterOptions dgc_cluster(const DgcOptions& dgc, Spread spread, std::function<double(uint64_t step)> sparsity) {
  ClusterOptions options;
  options.ranks = spread.ranks;
  options.local_workers = spread.local_workers;
  options.steps = 7;
  options.sparsity = std::move(sparsity);
  options.make = [=](const OptimizerContext& context) { return make_dgc(context, dgc); };
  return options;
}

// What every worker starts from.
inline std::vector<float> initial_weights() {
  const auto backend = make_cpu_backend(1);
  const Arena weights(backend->device(), small_layout());
  initialize(weights, 5);
  return to_vector(weights);
}

// Runs the steps and returns rank 0's weights; REQUIREs that all ranks end with the same bits.
inline std::vector<float> run_cluster(const ClusterOptions& options) {
  std::vector<std::unique_ptr<Communicator>> group;
  if (options.ranks == 1) {
    group.push_back(make_single_communicator());
  } else {
    group = make_thread_communicators(options.ranks);
  }
  std::vector<std::vector<float>> results(group.size());
  std::mutex one_at_a_time;
  run_ranks(group, [&](Communicator& communicator) {
    const ParamLayout& layout = small_layout();
    const auto backend = options.backend();
    const auto optimizer = options.make({*backend, communicator, layout, options.local_workers});
    const Arena weights(backend->device(), layout);
    initialize(weights, 5);
    std::vector<Arena> gradients;
    std::vector<float*> pointers;
    for (int local = 0; local < options.local_workers; ++local) {
      gradients.emplace_back(backend->device(), layout);
      pointers.push_back(gradients.back().data());
    }
    StepRecord record(*backend, communicator, options.local_workers);
    for (uint64_t step = 0; step < static_cast<uint64_t>(options.steps); ++step) {
      const std::vector<float> before = to_vector(weights);
      for (int local = 0; local < options.local_workers; ++local) {
        const int worker = communicator.rank() * options.local_workers + local;
        fill(gradients[static_cast<size_t>(local)],
             [&](int64_t e) { return options.gradient(worker, step, e, before[static_cast<size_t>(e)]); });
      }
      const StepReport report =
          Stepper{*optimizer, record, weights, pointers}.step(step, options.lr, options.sparsity(step));
      const std::lock_guard lock(one_at_a_time);
      if (options.after) options.after(communicator.rank(), step, *optimizer, weights, report);
    }
    results[static_cast<size_t>(communicator.rank())] = to_vector(weights);
  });
  for (const auto& result : results) REQUIRE((result == results[0]));
  return results[0];
}

}  // namespace dgc::test
