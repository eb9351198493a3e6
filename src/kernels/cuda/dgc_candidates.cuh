// Selection among the collected candidates, by all blocks at once, one block of the table (65,536 elements) at a time.
//   dgc_sort_out       finds the bin that holds the k-th largest, counts what lies above, and gathers what lies in it
//   emit_listed_block  finds the k-th largest among the gathered ones, and sends every candidate that reaches it
// A grid-wide barrier separates the two.
#pragma once

#include "kernels/cuda/dgc_accumulate.cuh"
#include "kernels/cuda/dgc_emit.cuh"

namespace dgc::cuda {

// Calls body(key, inside) with the block's candidates in index order, kDgcThreads at a time. In the last round `inside`
// is false for the threads that have no candidate.
template <typename Body>
__device__ inline void each_candidate(const DgcCompressScratch& scratch, const DgcSegment& s, int segment,
                                      int64_t block, DgcShared& shared, const Body& body) {
  const int64_t left = s.numel - (block - s.first_block) * kDgcBlock;
  const auto strips = static_cast<unsigned>((smaller(left, kDgcBlock) + kDgcStrip - 1) / kDgcStrip);
  DgcStripRecord mine{0, 0};
  if (threadIdx.x < strips) mine = scratch.strips[block * kDgcStrips + threadIdx.x];
  const DgcScan scan = block_scan(mine.count, shared);
  if (threadIdx.x < kDgcStrips) {
    shared.strip_first[threadIdx.x] = mine.first;
    shared.strip_end[threadIdx.x] = scan.before + mine.count;
  }
  __syncthreads();
  const uint64_t* keys = keys_of(scratch, s, segment);
  for (unsigned at = 0; at < scan.total; at += kDgcThreads) {
    const unsigned i = at + threadIdx.x;
    const bool inside = i < scan.total;
    uint64_t key = 0;
    if (inside) {
      unsigned low = 0, high = kDgcStrips - 1;  // the first strip that ends behind i
      while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (shared.strip_end[middle] > i) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      key = keys[shared.strip_first[low] + (i - (low > 0 ? shared.strip_end[low - 1] : 0))];
    }
    body(key, inside);
  }
  // strip_first and strip_end are not written again before the next block's scan has synchronized.
}

// How many candidates to aim at: half as many again as k, in case the threshold does not move as expected, and four
// standard deviations of a count of k, which matter when k is small.
__device__ inline unsigned list_length(int64_t k) {
  return static_cast<unsigned>(k + k / 2) + static_cast<unsigned>(4 * sqrtf(static_cast<float>(k)));
}

__device__ inline void dgc_sort_out(const DgcCompressArgs& a, const DgcCompressScratch& scratch, DgcShared& shared) {
  for (int64_t block = blockIdx.x; block < a.table.blocks; block += gridDim.x) {
    const int segment = segment_of(a.table, block);
    const DgcSegment& s = a.table.segments[segment];
    const DgcAim aim = aim_at(a.guesses[segment], s);
    const unsigned collected = scratch.collected[segment], k = static_cast<unsigned>(s.k);
    const bool usable = collected >= k && collected <= aim.limit;
    const unsigned* histogram = scratch.guess_histogram + segment * kDgcGuessBins;
    DgcBin cut{0, 0};
    if (usable) cut = find_bin<kDgcGuessBins>(histogram, k, shared);
    if (block == s.first_block) {
      DgcSegmentRecord record{usable, k - cut.above, __uint_as_float(aim.guess), 1};
      const unsigned wanted = list_length(s.k);
      if (usable && wanted <= collected) {
        const DgcBin lowest = find_bin<kDgcGuessBins>(histogram, wanted, shared);
        record.lowest = __uint_as_float(smallest_in_bin(lowest.bin, aim.guess));
        record.is_short = 0;
      }
      if (threadIdx.x == 0) scratch.segments[segment] = record;
    }
    if (!usable) continue;

    unsigned sure = 0;
    each_candidate(scratch, s, segment, block, shared, [&](uint64_t key, bool inside) {
      if (!inside) return;
      const unsigned bin = guess_bin(key_magnitude(key), aim.guess);
      if (bin > cut.bin) ++sure;
      if (bin != cut.bin) return;
      const unsigned to = atomicAdd(&scratch.ties[segment], 1u);
      if (to < kDgcTies) scratch.tie_keys[segment * int64_t{kDgcTies} + to] = key;
    });
    sure = block_sum(sure, shared);
    if (threadIdx.x == 0) scratch.sure[block] = sure;
  }
}

// True if a segment's k largest elements can be selected from its list, which is known after dgc_sort_out.
__device__ inline bool is_listed(const DgcCompressScratch& scratch, int segment) {
  return scratch.segments[segment].usable != 0 && scratch.ties[segment] <= kDgcTies;
}

__device__ inline bool all_are_listed(const DgcTable& table, const DgcCompressScratch& scratch, DgcShared& shared) {
  unsigned missing = 0;
  for (int i = static_cast<int>(threadIdx.x); i < table.count; i += kDgcThreads) missing += !is_listed(scratch, i);
  return block_sum(missing, shared) == 0;
}

// Returns the need-th largest of the keys in shared.ties, which all differ.
__device__ inline uint64_t nth_tie(unsigned count, unsigned need, DgcShared& shared) {
  for (unsigned i = threadIdx.x; i < count; i += kDgcThreads) {
    unsigned larger = 0;
    for (unsigned j = 0; j < count; ++j) larger += shared.ties[j] > shared.ties[i];
    if (larger == need - 1) shared.word = shared.ties[i];
  }
  __syncthreads();
  return shared.word;
}

__device__ inline void remember(DgcGuess& guess, const DgcSegment& s, float threshold, float tail, bool hit) {
  const bool known = guess.k == s.k && guess.threshold > 0;
  guess.growth = known ? fminf(fmaxf(threshold / guess.threshold, 0.25f), 4.f) : 1.f;
  guess.threshold = threshold;
  guess.tail = tail > 0.1f ? tail : DgcGuess{}.tail;  // also for thresholds of 0, infinity and NaN
  guess.k = s.k;
  guess.hit = hit;
}

__device__ inline void emit_listed_block(const DgcCompressArgs& a, const DgcCompressScratch& scratch, int segment,
                                         int64_t block, DgcShared& shared) {
  const DgcSegment& s = a.table.segments[segment];
  const DgcSegmentRecord record = scratch.segments[segment];
  const unsigned count = scratch.ties[segment];
  const int64_t local = block - s.first_block;
  for (unsigned i = threadIdx.x; i < count; i += kDgcThreads) {
    shared.ties[i] = scratch.tie_keys[segment * int64_t{kDgcTies} + i];
  }
  __syncthreads();
  const uint64_t cut = nth_tie(count, record.need, shared);

  unsigned before = 0;  // entries of the blocks before this one
  for (int64_t b = s.first_block + threadIdx.x; b < block; b += kDgcThreads) before += scratch.sure[b];
  for (unsigned i = threadIdx.x; i < count; i += kDgcThreads) {
    before += shared.ties[i] >= cut && key_index(shared.ties[i]) / kDgcBlock < local;
  }
  unsigned entry = block_sum(before, shared);

  const DgcEmitter emitter(a, s);
  each_candidate(scratch, s, segment, block, shared, [&](uint64_t key, bool inside) {
    const bool sent = inside && key >= cut;
    const DgcScan scan = block_scan(sent, shared);
    if (sent) emitter.emit(entry + scan.before, key_index(key));
    entry += scan.total;
  });
  if (threadIdx.x == 0) emitter.end_block(local, entry);
  if (threadIdx.x == 0 && local == 0) {
    const float threshold = __uint_as_float(key_magnitude(cut));
    const float below = 1 - record.lowest / threshold;
    // A list that is shorter than wanted says nothing about what lies below, so the next one reaches twice as far.
    const float tail = record.is_short ? 1 - fmaxf(2 * below, 0.01f) : fminf(1 - below, 1.f);
    remember(a.guesses[segment], s, threshold, tail, true);
  }
}

}  // namespace dgc::cuda
