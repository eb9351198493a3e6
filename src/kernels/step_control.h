#pragma once

#include <cstdint>

#include "tensor/wire_types.h"

namespace dgc {

// The loss scale does not double from here on: an infinite one would turn gradients of 0 into NaN, and stay infinite.
inline constexpr float kMostLossScale = 0x1p64f;

// What changes from step to step, in DEVICE memory: ops read it there, so that a step can be queued, or recorded once
// and replayed, without the host waiting for a number. Each rank has a StepControl, and all ranks hold the same values.
struct StepControl {
  uint64_t step = 0;
  float lr = 0;
  int32_t skip = 0;         // not 0: some worker's gradient is not finite, so the step changes the loss scale only
  double mean_square = 0;   // mean over all workers of |gradient|^2, without the loss scale
  float loss_scale = 1;     // fp16: the loss is multiplied by this, and the gradient is divided by it before use
  uint32_t good_steps = 0;  // steps at this loss scale, with the one that has begun
  // After this many good steps the loss scale doubles, a skipped step halves it, to 1 at least; 0: fixed.
  uint32_t scale_every = 0;
  uint32_t reserved = 0;  // fills the gap: the struct is compared and saved byte by byte
  WireFault fault{};      // the first message that could not be used; from then on dgc_apply does nothing
};

// What a loss adds up over a batch, on the device as three doubles. What is counted depends on the loss
// (layers/loss.h).
struct LossStats {
  double loss = 0;
  double counts[2] = {};

  constexpr void add(const LossStats& more) {
    loss += more.loss;
    for (int i = 0; i < 2; ++i) counts[i] += more.counts[i];
  }
};

// What each worker tells all others in every step. The shares lie in device memory.
struct WorkerShare {
  double square = 0;  // |gradient|^2, with the loss scale still in it
  LossStats loss{};   // summed over the worker's batch
  double stop = 0;    // not 0: the worker's rank was asked to stop
};

}  // namespace dgc
