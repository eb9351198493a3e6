#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"
#include "optim/optimizer.h"
#include "tools/bench/phases.h"

// Measurements behind `dgc bench`. Each measurement prepares and runs until steady. bench_dgc()
// and bench_train() take medians of their stretches.
namespace dgc {

struct BenchOptions {
  int warmup = 10;  // steps that are not counted
  int steps = 20;   // in one stretch
  int repeats = 5;  // stretches
};

struct DgcBenchOptions {
  int warmup = 10;  // steps that are not counted
  int steps = 100;  // of which the median is taken
  std::string device = "auto";
  int threads = 0;  // CPU threads; 0: all cores
  double sparsity = 0.999;
  std::string model = "resnet50";  // one of bench_models(), whose tensors are compressed
  int workers = 1;                 // whose messages are applied
  double weight_decay = 0;         // above 0, applying moves all weights and the decay's momentum
};

// The DGC step of one worker, in turn with a plain copy that moves as many bytes: 20 per parameter, the least that
// reading g, u, v and writing u, v takes; and applying all workers' messages.
struct DgcBench {
  std::string device;
  int64_t parameters = 0;
  double compress_ms = 0;  // until the message is sealed
  double apply_ms = 0;     // all workers' messages, checked
  double copy_ms = 0;
  double hits = 0;  // share of tensors whose guess was good in the last step
  double gb_per_s() const { return 20e-6 * static_cast<double>(parameters) / compress_ms; }
  double copy_gb_per_s() const { return 20e-6 * static_cast<double>(parameters) / copy_ms; }
};
// Throws UserError when this machine does not have the device, or its memory is short.
DgcBench bench_dgc(const DgcBenchOptions&);

// All plans of each convolution of a config's training step, on its device. Nothing is opened. Throws UserError where
// the device is no GPU.
ConvTimings bench_convolutions(
    const Config&, const ConvTimed& = [](const auto&) {});

// Training steps of a config, data included.
struct TrainBench {
  std::string device;
  int64_t global_batch = 0;
  int64_t steps_per_epoch = 0;
  double ms_per_step = 0;
  // Phases of steps that are not recorded; such steps are slower than ms_per_step where recording helps.
  std::vector<Phases::Phase> phases;  // milliseconds per step
  double ms_unrecorded = 0;           // an unrecorded step as a whole
  // What exchange.overlap did beside the backward pass on rank 0, in the steps that ms_per_step measures. Its steps are
  // 0 without overlap.
  ExchangeTime overlap;
  // The share of compression and exchange that ran while gradients were being computed; 0 without overlap.
  double exchange_hidden() const { return overlap.seconds > 0 ? overlap.hidden_share() : 0; }
  double samples_per_s() const { return 1000.0 * static_cast<double>(global_batch) / ms_per_step; }
};
// Throws UserError where config, launcher and data do not fit together, and what on_ranks() throws.
TrainBench bench_train(const Config&, const BenchOptions&);

// The batches that rank 0 of a config trains on, made as in a training and then left: no model, no device.
struct DataBench {
  std::string samples;  // what is counted: "images", "words" or "utterances"
  int threads = 1;      // loader threads
  int64_t count = 0;    // samples of the batches that were made while the clock ran
  double seconds = 0;
  double cpu_seconds = 0;  // processor time of this process meanwhile, of users and of the system
  double samples_per_s() const { return static_cast<double>(count) / seconds; }
  double samples_per_cpu_s() const { return static_cast<double>(count) / cpu_seconds; }
  // The share of their time that loader threads compute. Otherwise they wait for files, or other programs have the
  // cores.
  double busy() const { return cpu_seconds / (seconds * threads); }
};
// The clock starts once as many batches are taken as there are loader threads, and stops with the first batch after so
// many seconds. Throws UserError when the data cannot be opened or read.
DataBench bench_data(const Config&, double seconds);

}  // namespace dgc
