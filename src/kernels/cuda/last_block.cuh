#pragma once

#include "kernels/cuda/model.h"

namespace dgc::cuda {

// Lets the block that finishes last put together what all have written, in a fixed order: a reduction in one launch,
// deterministic, without float atomics. `ticket` is a counter in device memory that is 0 between launches. True for all
// threads of the last of `blocks` blocks, which then see everything that the others wrote before they asked.
// Every thread of every block calls this once; `is_last` is the block's shared memory.
__device__ inline bool last_block(unsigned* ticket, unsigned blocks, bool& is_last) {
  __threadfence();  // before the ticket, so that a block that sees the ticket sees the results
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(ticket, 1u) == blocks - 1;
    if (is_last) *ticket = 0;
  }
  __syncthreads();
  if (is_last) __threadfence();
  return is_last;
}

// How many counters a backend keeps. That is enough for 32 times as many channels of a batch normalisation.
inline constexpr int kTickets = 4096;

}  // namespace dgc::cuda
