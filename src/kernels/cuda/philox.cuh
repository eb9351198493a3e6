#pragma once

#include "kernels/cuda/model.h"

namespace dgc::cuda {

// Computes block `counter` of the random stream: the numbers of tensor/rng.h, bit for bit.
__device__ inline void philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t (&numbers)[4]) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  numbers[0] = c0;
  numbers[1] = c1;
  numbers[2] = c2;
  numbers[3] = c3;
}

}  // namespace dgc::cuda
