#pragma once

#include <cstdint>

#include "config/options.h"

// Measurements behind `dgc bench`. Each prepares, runs until steady, then takes the median of several stretches.
namespace dgc {

struct BenchOptions {
  int warmup = 10;          // steps that are not counted
  int steps = 20;           // in one stretch
  int repeats = 5;          // stretches
  int threads = 0;          // bench dgc: compute threads, 0: all cores
  double sparsity = 0.999;  // bench dgc
};

// The DGC step of one worker on the tensors of ResNet-50 (25,557,032 parameters), in turn with a plain copy that moves
// as many bytes: 20 per parameter, the least that reading g, u, v and writing u, v takes.
struct DgcBench {
  int64_t parameters = 0;
  double compress_ms = 0;
  double apply_ms = 0;  // one message, no weight decay
  double copy_ms = 0;
  double gb_per_s() const { return 20e-6 * static_cast<double>(parameters) / compress_ms; }
  double copy_gb_per_s() const { return 20e-6 * static_cast<double>(parameters) / copy_ms; }
};
DgcBench bench_dgc(const BenchOptions&);

// Training steps of a config, data included.
struct TrainBench {
  int64_t global_batch = 0;
  double ms_per_step = 0;
  double samples_per_s() const { return 1000.0 * static_cast<double>(global_batch) / ms_per_step; }
};
TrainBench bench_train(const Config&, const BenchOptions&);

}  // namespace dgc
