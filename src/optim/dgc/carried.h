#pragma once

#include <span>
#include <vector>

#include "optim/dgc/messages.h"

namespace dgc {

// What a rank needs to apply messages that its caller has carried (optim/carried_step.h), where those of some workers
// may be missing. A worker without a message counts as one that had nothing to send: its message has values of +0, and
// its small tensors are +0.
class Carried {
 public:
  Carried(const OptimizerContext&, int64_t dense);  // dense: elements that travel beside a message

  size_t dense_bytes() const { return float_bytes(dense_); }

  // Waits for the device where it copies from host memory, and queues the rest. from: for each of all workers in host
  // memory its message as it travels, with the dense elements behind it, or null. zeros: an arena, which stays as it
  // is. Makes `bucket` ready for apply(), and returns the sum of the dense elements in worker order: device memory,
  // valid until the next call; null if there are none.
  const float* place(Bucket& bucket, std::span<const std::byte* const> from, float* zeros, const StepControl*);

 private:
  OptimizerContext context_;
  int64_t dense_;
  Buffer rows_;  // the dense elements of every worker, one worker after the other
  Buffer sum_;
  std::vector<const float*> row_pointers_;
};

}  // namespace dgc
