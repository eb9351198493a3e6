// XXH64 of whole 64-bit words, as the specification of XXH64 defines it. XXH64 keeps four sums that are joined only at
// the end, so four neighbouring threads carry one sum each. A warp computes eight hashes at once, or one hash in less
// time, because the 28 other lanes help to load.
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

// What is left to do when each thread of a group of four has its sum of the words up to the last multiple of four.
template <typename Word>
__device__ inline uint64_t xxh64_join(uint64_t sum, int64_t words, uint64_t seed, const Word& word) {
  const int64_t whole = words / 4 * 4;
  uint64_t rest[3];
#pragma unroll
  for (int j = 0; j < 3; ++j) rest[j] = whole + j < words ? word(whole + j) : 0;
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
#pragma unroll
  for (int j = 0; j < 3; ++j) {
    if (whole + j < words) hash = rotate_left(hash ^ xxh64_round(0, rest[j]), 27) * kXxhPrime1 + kXxhPrime4;
  }
  hash = (hash ^ hash >> 33) * kXxhPrime2;
  hash = (hash ^ hash >> 29) * kXxhPrime3;
  return hash ^ hash >> 32;
}

__device__ inline uint64_t xxh64_first_sum(int me, uint64_t seed) {
  return seed + (me == 0 ? kXxhPrime1 + kXxhPrime2 : me == 1 ? kXxhPrime2 : me == 2 ? 0 : 0 - kXxhPrime1);
}

// word(i) gives the i-th of `words` words. All threads of a warp call this together, the four of a group with the same
// arguments; each gets its group's hash. A group without data passes 0 words.
template <typename Word>
__device__ inline uint64_t xxh64_by_four(int64_t words, uint64_t seed, const Word& word) {
  const int me = static_cast<int>(threadIdx.x % 4);
  const int64_t whole = words / 4 * 4;
  uint64_t sum = xxh64_first_sum(me, seed);
  constexpr int kAtOnce = 8;  // loads that are under way at once
  for (int64_t first = me; first < whole; first += 4 * kAtOnce) {
    uint64_t some[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) some[j] = first + 4 * j < whole ? word(first + 4 * j) : 0;
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      if (first + 4 * j < whole) sum = xxh64_round(sum, some[j]);
    }
  }
  return xxh64_join(sum, words, seed, word);
}

// The same for a whole warp: all lanes have the same arguments, and each gets the hash.
template <typename Word>
__device__ inline uint64_t xxh64_by_warp(int64_t words, uint64_t seed, const Word& word) {
  const int lane = static_cast<int>(threadIdx.x % 32), me = lane % 4;
  const int64_t whole = words / 4 * 4;
  uint64_t sum = xxh64_first_sum(me, seed);
  constexpr int kAtOnce = 4;  // loads that are under way at once
  for (int64_t first = 0; first < whole; first += 32 * kAtOnce) {
    uint64_t some[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t i = first + 32 * j + lane;
      some[j] = i < whole ? word(i) : 0;
    }
#pragma unroll
    for (int j = 0; j < 8 * kAtOnce; ++j) {
      const uint64_t mine = __shfl_sync(0xffffffffu, some[j / 8], j % 8 * 4 + me);
      if (first + 4 * j < whole) sum = xxh64_round(sum, mine);
    }
  }
  return xxh64_join(sum, words, seed, word);
}

}  // namespace dgc::cuda
