// What the DGC kernels have in common, for the most part what the 32 lanes of a warp or the kDgcThreads threads of a
// block compute together.
#pragma once

#include "kernels/cuda/dgc_scratch.h"
#include "kernels/cuda/model.h"

namespace dgc::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kDgcWarps = kDgcThreads / 32;

__device__ inline int lane() { return static_cast<int>(threadIdx.x % 32); }
__device__ inline int warp() { return static_cast<int>(threadIdx.x / 32); }
__device__ inline unsigned lanes_before() { return (1u << lane()) - 1; }

__device__ inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Calls body(i) for every i below `count`, on all lanes of one warp. Neighbours go to different multiprocessors.
template <typename Body>
__device__ inline void each_by_warp(int64_t count, const Body& body) {
  const int64_t warps = int64_t{gridDim.x} * kDgcWarps;
  for (int64_t i = int64_t{warp()} * gridDim.x + blockIdx.x; i < count; i += warps) body(i);
}

__device__ inline void zero_all(unsigned* counters, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * kDgcThreads;
  for (int64_t i = int64_t{blockIdx.x} * kDgcThreads + threadIdx.x; i < count; i += step) counters[i] = 0;
}

// The bits of |v| have the order of |v|. A selection key is one number for an element, as on the CPU: a larger
// magnitude has a larger key, and of equal magnitudes the lower index has the larger key.
__device__ inline unsigned magnitude_bits(float v) { return __float_as_uint(v) & 0x7fffffffu; }
__device__ inline uint64_t selection_key(unsigned magnitude, unsigned index) {
  return uint64_t{magnitude} << 32 | static_cast<unsigned>(~index);
}
__device__ inline unsigned key_magnitude(uint64_t key) { return static_cast<unsigned>(key >> 32); }
__device__ inline unsigned key_index(uint64_t key) { return ~static_cast<unsigned>(key); }

// Of each strip of a wire block: where its candidates start in the list, and how many the strips up to it have.
struct DgcStrips {
  unsigned first[kDgcStrips];
  unsigned end[kDgcStrips];
};

struct DgcShared {
  unsigned warp_sums[kDgcWarps];
  unsigned bin, above;  // find_bin's result
  unsigned strip_first[kDgcStrips + 1];
  unsigned strip_end[kDgcStrips + 1];
  bool is_last;
  union {
    unsigned histogram[2048];
    DgcStrips strips[kDgcWarps];  // one for each warp
  };
};

struct DgcScan {
  unsigned before;  // sum over the threads before this one
  unsigned total;
};

__device__ inline DgcScan warp_scan(unsigned value) {
  unsigned sum = value;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const unsigned below = __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(d));
    if (lane() >= d) sum += below;
  }
  return {sum - value, __shfl_sync(kAllLanes, sum, 31)};
}

__device__ inline unsigned warp_sum(unsigned value) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(kAllLanes, value, d);
  return value;
}

__device__ inline unsigned warp_max(unsigned value) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const unsigned other = __shfl_xor_sync(kAllLanes, value, d);
    value = value > other ? value : other;
  }
  return value;
}

__device__ inline uint64_t warp_or(uint64_t value) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) value |= __shfl_xor_sync(kAllLanes, value, d);
  return value;
}

// `shared` has an array warp_sums, with a number for each warp of the block.
template <typename Shared>
__device__ inline DgcScan block_scan(unsigned value, Shared& shared) {
  constexpr int kWarps = static_cast<int>(sizeof(Shared::warp_sums) / sizeof(unsigned));
  const DgcScan inner = warp_scan(value);
  __syncthreads();  // waits for threads that still read the previous call's sums
  if (lane() == 31) shared.warp_sums[warp()] = inner.total;
  __syncthreads();
  DgcScan scan{inner.before, 0};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp()) scan.before += shared.warp_sums[w];
    scan.total += shared.warp_sums[w];
  }
  return scan;
}

template <typename Shared>
__device__ inline unsigned block_sum(unsigned value, Shared& shared) {
  return block_scan(value, shared).total;
}

struct DgcBin {
  unsigned bin;    // the bin that holds the want-th largest element
  unsigned above;  // number of elements in higher bins
};

// Finds the bin of the want-th largest of the elements that `histogram` has counted; want is at least 1 and at most the
// number of these elements. The histogram is aligned to 16 bytes.
template <int kBins>
__device__ inline DgcBin find_bin(const unsigned* histogram, unsigned want, DgcShared& shared) {
  constexpr int kEach = kBins / kDgcThreads;
  const int top = kBins - 1 - static_cast<int>(threadIdx.x) * kEach;  // this thread's highest bin
  const auto* fours = reinterpret_cast<const uint4*>(histogram + top + 1 - kEach);
  unsigned counts[kEach], sum = 0;
#pragma unroll
  for (int j = 0; j < kEach; j += 4) {
    const uint4 four = fours[(kEach - 1 - j) / 4];
    counts[j] = four.w, counts[j + 1] = four.z, counts[j + 2] = four.y, counts[j + 3] = four.x;
  }
#pragma unroll
  for (int j = 0; j < kEach; ++j) sum += counts[j];
  unsigned above = block_scan(sum, shared).before;
  if (above < want && want <= above + sum) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (above < want && want <= above + counts[j]) {
        shared.bin = static_cast<unsigned>(top - j);
        shared.above = above;
      }
      above += counts[j];
    }
  }
  __syncthreads();
  return {shared.bin, shared.above};  // not written again before the next call's scan has synchronized
}

}  // namespace dgc::cuda
