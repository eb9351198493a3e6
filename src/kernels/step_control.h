#pragma once

#include <cstdint>

#include "tensor/wire_types.h"

namespace dgc {

// What changes from step to step, in DEVICE memory: ops read it there, so that a step can be queued, or recorded once
// and replayed, without the host waiting for a number. One per rank; the same values on every rank.
struct StepControl {
  uint64_t step = 0;
  float lr = 0;
  int32_t skip = 0;          // some worker's gradient is not finite: this step changes nothing but the loss scale
  double mean_square = 0;    // over all workers, of |gradient|^2
  float loss_scale = 1;      // the loss is multiplied by it, the gradient divided before it is used (fp16)
  uint32_t good_steps = 0;   // in a row at this loss scale
  uint32_t scale_every = 0;  // so many good steps double the loss scale, a skipped one halves it; 0: it is fixed
  uint32_t reserved = 0;     // the struct is compared and saved byte by byte: no gaps
  WireFault fault{};         // the first message that could not be used: from then on dgc_apply does nothing
};

// What a loss adds up over a batch, on the device as three doubles. What is counted depends on the loss
// (layers/loss.h).
struct LossStats {
  double loss = 0;
  double counts[2] = {};

  void add(const LossStats& more) {
    loss += more.loss;
    for (int i = 0; i < 2; ++i) counts[i] += more.counts[i];
  }
};

// What one worker tells all others in every step, in device memory too.
struct WorkerShare {
  double square = 0;  // |gradient|^2, with the loss scale still in it
  LossStats loss{};   // of its batch
  double stop = 0;    // not 0: its rank was asked to stop
};

}  // namespace dgc
