#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"

namespace dgc {

// How fast a GPU is taken to be: what its data sheet says, times a share of it. The share of the memory's speed and the
// times are fitted to what steps of three models took on an H200 (docs/results.md), and the share of the products'
// speed is assumed. Of other GPUs nothing has been timed.
struct DeviceModel {
  std::string_view name;
  double bytes_per_second;                    // of its memory
  double half_flops, tf32_flops, fp32_flops;  // of matrix products, per second
  double launch_seconds = 10e-6;              // of a small kernel in a graph, one after another
  double serial_step_seconds = 12e-6;         // of a step that waits for the one before it
  double start_seconds = 4.7e-6;  // from one start of a kernel or such a step to the next, in all lanes together
};
std::vector<std::string> device_model_names();
const DeviceModel& device_model(const std::string& name);

// Some calls of ops together.
struct ModelledPart {
  std::string name;
  int64_t calls = 0, launches = 0, bytes = 0;
  double flops = 0, seconds = 0;
};

// The time of one rank's training step, without the network between ranks and without what the host does, on a GPU that
// has room for all workers at once.
struct StepModel {
  ModelledPart total;
  std::vector<ModelledPart> phases;  // in their order: the ranges that a profiler shows
  std::vector<ModelledPart> ops;     // that which takes longest first
  double dgc_share = 0;              // of the ops of DGC, in the total's seconds
};

// A call of an op takes the longer of its bytes' time and its products' time, or what steps that wait for each other
// take, and not less than its launches. Lanes beside each other take as long as the longest of them alone, or as the
// bytes, products and starts of all, whichever is longer; of that time each of their calls has its share.
StepModel model_step(const Config&, const DeviceModel&);

}  // namespace dgc
