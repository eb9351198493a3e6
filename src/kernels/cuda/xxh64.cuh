// XXH64 of whole 64-bit words, as the specification of XXH64 defines it, computed by four neighbouring threads. XXH64
// keeps four sums that are joined only at the end, so each thread carries one sum. A warp computes eight hashes at
// once.
#pragma once

#include "kernels/cuda/model.h"

namespace dgc::cuda {

inline constexpr uint64_t kXxhPrime1 = 0x9e3779b185ebca87u, kXxhPrime2 = 0xc2b2ae3d27d4eb4fu,
                          kXxhPrime3 = 0x165667b19e3779f9u, kXxhPrime4 = 0x85ebca77c2b2ae63u,
                          kXxhPrime5 = 0x27d4eb2f165667c5u;

__device__ inline uint64_t rotate_left(uint64_t x, int by) { return x << by | x >> (64 - by); }

__device__ inline uint64_t xxh64_round(uint64_t sum, uint64_t word) {
  return rotate_left(sum + word * kXxhPrime2, 31) * kXxhPrime1;
}

// word(i) gives the i-th of `words` words. All threads of a warp call this together, the four of a group with the same
// arguments; each gets its group's hash. A group without data passes 0 words.
template <typename Word>
__device__ inline uint64_t xxh64_by_four(int64_t words, uint64_t seed, const Word& word) {
  const int me = static_cast<int>(threadIdx.x % 4);
  uint64_t sum = seed + (me == 0 ? kXxhPrime1 + kXxhPrime2 : me == 1 ? kXxhPrime2 : me == 2 ? 0 : 0 - kXxhPrime1);
  const int64_t whole = words / 4 * 4;
#pragma unroll 8
  for (int64_t i = 0; i < whole; i += 4) sum = xxh64_round(sum, word(i + me));

  uint64_t sums[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) sums[j] = __shfl_sync(0xffffffffu, sum, j, 4);
  uint64_t hash = seed + kXxhPrime5;
  if (whole > 0) {
    hash = rotate_left(sums[0], 1) + rotate_left(sums[1], 7) + rotate_left(sums[2], 12) + rotate_left(sums[3], 18);
#pragma unroll
    for (int j = 0; j < 4; ++j) hash = (hash ^ xxh64_round(0, sums[j])) * kXxhPrime1 + kXxhPrime4;
  }
  hash += static_cast<uint64_t>(words) * 8;
  for (int64_t i = whole; i < words; ++i) {
    hash = rotate_left(hash ^ xxh64_round(0, word(i)), 27) * kXxhPrime1 + kXxhPrime4;
  }
  hash = (hash ^ hash >> 33) * kXxhPrime2;
  hash = (hash ^ hash >> 29) * kXxhPrime3;
  return hash ^ hash >> 32;
}

}  // namespace dgc::cuda
