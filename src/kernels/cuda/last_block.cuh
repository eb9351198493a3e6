#pragma once

#include "kernels/cuda/model.h"

namespace dgc::cuda {

// Lets the block that finishes last join what all blocks have written, in a fixed order. So a reduction takes one
// launch, is deterministic and needs no float atomics. `ticket` is a counter in device memory that is 0 between
// launches. Returns true for all threads of the last of `blocks` blocks, which then see everything that the other
// blocks wrote before their calls. Every thread of every block calls this once; `is_last` is the block's shared memory.
__device__ inline bool last_block(unsigned* ticket, unsigned blocks, bool& is_last) {
  __syncthreads();
  if (threadIdx.x == 0) {
    // Only a fence of the thread that takes the ticket, behind the barrier, makes the writes of the whole block visible
    // to who sees the ticket (PTX ISA, "Memory Consistency Model": causality order is cumulative over barriers).
    __threadfence();
    is_last = atomicAdd(ticket, 1u) == blocks - 1;
    if (is_last) *ticket = 0;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

// The number of counters that a backend makes at first, which is enough for 32 times as many columns.
inline constexpr int64_t kFewestTickets = 4096;

}  // namespace dgc::cuda
