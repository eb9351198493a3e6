#pragma once

#include <span>
#include <vector>

#include "dist/communicator.h"
#include "kernels/backend.h"

namespace dgc {

// Sums n floats over all workers, one after another in worker order, so that the bits do not depend on how the workers
// are spread over ranks: every rank sums one shard, and an all-gather brings the sums to all ranks. The traffic is that
// of a ring.
class OrderedReduce {
 public:
  // use: what the sum is for.
  OrderedReduce(Backend&, Communicator&, int local_workers, int64_t n, MemoryUse use);

  // Collective. local_workers: device memory [n] each. Returns device memory [n], valid until the next call: that of
  // the worker itself where there is only one.
  float* run(std::span<float* const> local_workers);

 private:
  Backend& backend_;
  Communicator& communicator_;
  int64_t n_, shard_;
  Buffer rows_;  // this rank's shard of every worker; empty with one rank
  Buffer mine_;  // the sum of those rows
  Buffer sum_;   // empty with one worker
  std::vector<const float*> row_pointers_;
};

}  // namespace dgc
