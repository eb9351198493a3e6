// The one pass over memory: it updates u and v and collects the elements whose |v| reaches the guess of their segment.
// A warp takes a strip of 512 elements and needs no barrier. 12 bytes are read and 8 written per element (8 and 4
// without momentum correction).
#pragma once

#include "kernels/cuda/dgc_block.cuh"
#include "kernels/dgc_guess.h"

namespace dgc::cuda {

enum class DgcRule { momentum, nesterov, plain };

// What is collected: the elements from magnitude `guess` on. A list of more than `limit` elements is not used.
struct DgcAim {
  unsigned guess;  // magnitude bits; a guess above every magnitude collects nothing
  unsigned limit;
};

__device__ inline DgcAim aim_at(const DgcGuess& guess, const DgcSegment& s) {
  const float threshold = next_threshold(guess, s);
  if (!(threshold > 0)) return {0x80000000u, 0};
  return {magnitude_bits(threshold), static_cast<unsigned>(candidate_limit(s, kDgcListShare))};
}

__device__ inline uint64_t* keys_of(const DgcCompressScratch& scratch, const DgcSegment& s, int segment) {
  return scratch.keys + s.first_block * kDgcKeysPerBlock + segment * kDgcKeysPerSegment;
}

__device__ inline unsigned guess_bin(unsigned magnitude, unsigned guess) {
  const unsigned above = magnitude - guess, fine = above >> kDgcFineShift;
  if (fine < kDgcFineBins) return fine;
  const unsigned coarse = kDgcFineBins + ((above - (kDgcFineBins << kDgcFineShift)) >> kDgcCoarseShift);
  return coarse < kDgcGuessBins ? coarse : kDgcGuessBins - 1;
}
__device__ inline unsigned smallest_in_bin(unsigned bin, unsigned guess) {
  if (bin < kDgcFineBins) return guess + (bin << kDgcFineShift);
  return guess + (kDgcFineBins << kDgcFineShift) + ((bin - kDgcFineBins) << kDgcCoarseShift);
}

// Element 4 * i + j of a thread's array is element 128 * i + 4 * lane() + j of the strip.
template <bool whole>
__device__ inline void load_strip(const float* from, int numel, float (&to)[16]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int at = 128 * i + 4 * lane();
    if constexpr (whole) {
      const float4 four = __ldcs(reinterpret_cast<const float4*>(from + at));
      to[4 * i] = four.x, to[4 * i + 1] = four.y, to[4 * i + 2] = four.z, to[4 * i + 3] = four.w;
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) to[4 * i + j] = at + j < numel ? from[at + j] : 0.f;
    }
  }
}

template <bool whole>
__device__ inline void store_strip(const float (&from)[16], int numel, float* to) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int at = 128 * i + 4 * lane();
    if constexpr (whole) {
      __stcs(reinterpret_cast<float4*>(to + at),
             make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]));
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (at + j < numel) to[at + j] = from[4 * i + j];
      }
    }
  }
}

// Leaves the strip's new v in the array `v`. Returns a bit for each element of the array: whether it reaches the guess.
template <DgcRule rule, bool whole>
__device__ inline unsigned accumulate_strip(const DgcCompressArgs& a, int64_t at, int numel, float scale,
                                            unsigned guess, float (&v)[16]) {
  float g[16], u[16];
  load_strip<whole>(a.g + at, numel, g);
  if constexpr (rule != DgcRule::plain) load_strip<whole>(a.u_from + at, numel, u);
  load_strip<whole>(a.v_from + at, numel, v);
  unsigned hits = 0;
#pragma unroll
  for (int e = 0; e < 16; ++e) {
    const float gradient = scale * g[e];
    if constexpr (rule == DgcRule::momentum) {
      u[e] = fmaf(a.momentum, u[e], gradient);
      v[e] = v[e] + u[e];
    } else if constexpr (rule == DgcRule::nesterov) {
      u[e] = a.momentum * (u[e] + gradient);
      v[e] = (v[e] + u[e]) + gradient;
    } else {
      v[e] = v[e] + gradient;
    }
    const bool inside = whole || 128 * (e / 4) + 4 * lane() + e % 4 < numel;
    if (inside && magnitude_bits(v[e]) >= guess) hits |= 1u << e;
  }
  if constexpr (rule != DgcRule::plain) store_strip<whole>(u, numel, a.u + at);
  store_strip<whole>(v, numel, a.v + at);
  return hits;
}

// Appends the hits to the segment's list, in index order within the strip, and counts them in the histogram.
__device__ inline DgcStripRecord collect(unsigned hits, const float (&v)[16], unsigned first_index, const DgcAim& aim,
                                         uint64_t* keys, unsigned* collected, unsigned* histogram) {
  // One word holds four counts, one per row of 128 elements; each count is at most 128.
  unsigned mine = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) mine |= static_cast<unsigned>(__popc(hits >> 4 * i & 15u)) << 8 * i;
  const auto [before, rows] = warp_scan(mine);
  const unsigned total = (rows & 255u) + (rows >> 8 & 255u) + (rows >> 16 & 255u) + (rows >> 24);
  unsigned first = 0;
  if (lane() == 0) first = atomicAdd(collected, total);
  first = __shfl_sync(kAllLanes, first, 0);
  if (first > aim.limit || total > aim.limit - first) return {first, total};

  unsigned row = first;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned to = row + (before >> 8 * i & 255u);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int e = 4 * i + j;
      if ((hits >> e & 1u) == 0) continue;
      const unsigned magnitude = magnitude_bits(v[e]);
      keys[to++] = selection_key(magnitude, first_index + static_cast<unsigned>(128 * i + 4 * lane() + j));
      atomicAdd(&histogram[guess_bin(magnitude, aim.guess)], 1u);
    }
    row += rows >> 8 * i & 255u;
  }
  return {first, total};
}

template <DgcRule rule>
__device__ inline void accumulate_one(const DgcCompressArgs& a, const DgcCompressScratch& scratch, int64_t strip,
                                      float scale) {
  const int segment = a.table.segment_of_block[strip / kDgcStrips];
  const DgcSegment& s = a.table.segments[segment];
  const int64_t first = (strip - s.first_block * kDgcStrips) * kDgcStrip;
  if (first >= s.numel) return;
  const auto numel = static_cast<int>(smaller(kDgcStrip, s.numel - first));
  const DgcAim aim = aim_at(a.guesses[segment], s);
  float v[16];
  const unsigned hits = numel == kDgcStrip
                            ? accumulate_strip<rule, true>(a, s.offset + first, numel, scale, aim.guess, v)
                            : accumulate_strip<rule, false>(a, s.offset + first, numel, scale, aim.guess, v);
  DgcStripRecord record{0, 0};
  if (__any_sync(kAllLanes, hits != 0)) {
    record = collect(hits, v, static_cast<unsigned>(first), aim, keys_of(scratch, s, segment),
                     scratch.collected + segment, scratch.guess_histogram + segment * kDgcGuessBins);
  }
  if (lane() == 0) scratch.strips[strip] = record;
}

// Multiprocessors do not get equal shares of the memory's bandwidth. The first three quarters of the strips are dealt
// out evenly; each strip of the rest goes to whichever warp is free. A warp draws its next strip before it works on
// this one, so that it does not wait for the counter.
template <DgcRule rule>
__device__ inline void accumulate(const DgcCompressArgs& a, const DgcCompressScratch& scratch) {
  const float scale = a.scale != nullptr ? *a.scale : 1.f;
  const int64_t warps = int64_t{gridDim.x} * kDgcWarps, own = int64_t{blockIdx.x} * kDgcWarps + warp();
  const int64_t strips = a.table.blocks * kDgcStrips, dealt = strips * 3 / 4 / warps * warps;
  const auto draw = [&] { return lane() == 0 ? atomicAdd(scratch.drawn, 1u) : 0u; };
  const auto drawn_strip = [&](unsigned number) { return dealt + __shfl_sync(kAllLanes, number, 0); };
  int64_t strip = own < dealt ? own : drawn_strip(draw());
  while (strip < strips) {
    const bool draws = strip + warps >= dealt;
    const unsigned next = draws ? draw() : 0u;
    accumulate_one<rule>(a, scratch, strip, scale);
    strip = draws ? drawn_strip(next) : strip + warps;
  }
}

}  // namespace dgc::cuda
