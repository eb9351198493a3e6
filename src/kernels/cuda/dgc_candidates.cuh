// Selection among the collected candidates. A warp works on a block of the table (65,536 elements) and needs no
// barrier.
//   dgc_sort_out  finds the bin that holds the k-th largest, counts what lies above, and gathers what lies in it
//   emit_listed   finds the k-th largest among the gathered ones, and sends every candidate that reaches it
// A grid-wide barrier separates the two.
#pragma once

#include "kernels/cuda/dgc_accumulate.cuh"
#include "kernels/cuda/dgc_emit.cuh"

namespace dgc::cuda {

// Calls body(block, segment) for every block of the table, on all lanes of one warp.
template <typename Body>
__device__ inline void each_block_by_warp(const DgcTable& table, const Body& body) {
  each_by_warp(table.blocks, [&](int64_t block) { body(block, table.segment_of_block[block]); });
}

// Finds the bin of the want-th largest of the `collected` elements that `histogram` has counted; want is at least 1 and
// at most `collected`. The search goes from the guess upwards, because the bins that are looked for lie near it.
__device__ inline DgcBin find_guess_bin(const unsigned* histogram, unsigned collected, unsigned want) {
  constexpr int kEach = 32;                // bins of a lane
  const unsigned rank = collected - want;  // so many elements are smaller than the one that is looked for
  const auto lane_that_has = [&](unsigned below, unsigned count) {
    return __ffs(static_cast<int>(__ballot_sync(kAllLanes, below <= rank && rank < below + count))) - 1;
  };
  unsigned below = 0;  // elements in the bins before `first`
  for (int first = 0;; first += 32 * kEach) {
    const auto* fours = reinterpret_cast<const uint4*>(histogram + first + lane() * kEach);
    unsigned sum = 0;
#pragma unroll
    for (int i = 0; i < kEach / 4; ++i) sum += fours[i].x + fours[i].y + fours[i].z + fours[i].w;
    const DgcScan lanes = warp_scan(sum);
    if (below + lanes.total > rank) {
      const int owner = lane_that_has(below + lanes.before, sum);
      below += __shfl_sync(kAllLanes, lanes.before, owner);
      const unsigned count = histogram[first + owner * kEach + lane()];
      const DgcScan bins = warp_scan(count);
      const int bin = lane_that_has(below + bins.before, count);
      const unsigned up_to_bin = below + __shfl_sync(kAllLanes, bins.before + count, bin);
      return {static_cast<unsigned>(first + owner * kEach + bin), collected - up_to_bin};
    }
    below += lanes.total;
  }
}

// A lane's records of a block's strips. They are loaded before what decides about the candidates is found, so that the
// loads of both do not wait for each other.
struct DgcLaneStrips {
  static constexpr int kEach = kDgcStrips / 32;

  __device__ DgcLaneStrips(const DgcCompressScratch& scratch, const DgcSegment& s, int64_t block) {
    const int64_t left = s.numel - (block - s.first_block) * kDgcBlock;
    const auto count = static_cast<int>((smaller(left, kDgcBlock) + kDgcStrip - 1) / kDgcStrip);
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int strip = lane() * kEach + j;
      records[j] = strip < count ? scratch.strips[block * kDgcStrips + strip] : DgcStripRecord{0, 0};
    }
  }

  DgcStripRecord records[kEach];
};

inline constexpr int kDgcKeysAtOnce = 4;

// Calls body(keys) with the block's candidates in index order, kDgcKeysAtOnce of them for each lane: lane l has number
// l, 32 + l, and so on. A key of 0 stands for no candidate. list: the candidates of the block's segment.
template <typename Body>
__device__ inline void each_candidate(const DgcLaneStrips& mine, const uint64_t* list, DgcStrips& strips,
                                      const Body& body) {
  constexpr int kEach = DgcLaneStrips::kEach;
  unsigned sum = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j) sum += mine.records[j].count;
  const DgcScan scan = warp_scan(sum);
  __syncwarp();  // waits for lanes that still read the previous block's strips
  unsigned end = scan.before;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    strips.first[lane() * kEach + j] = mine.records[j].first;
    strips.end[lane() * kEach + j] = end += mine.records[j].count;
  }
  __syncwarp();

  for (unsigned at = 0; at < scan.total; at += 32 * kDgcKeysAtOnce) {
    uint64_t keys[kDgcKeysAtOnce];
#pragma unroll
    for (int j = 0; j < kDgcKeysAtOnce; ++j) {
      const unsigned i = at + static_cast<unsigned>(32 * j + lane());
      keys[j] = 0;
      if (i >= scan.total) continue;
      int low = 0, high = kDgcStrips - 1;  // the first strip that ends behind i
      while (low < high) {
        const int middle = (low + high) / 2;
        if (strips.end[middle] > i) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      keys[j] = list[strips.first[low] + (i - (low > 0 ? strips.end[low - 1] : 0))];
    }
    body(keys);
  }
}

__device__ inline void dgc_sort_out(const DgcCompressArgs& a, const DgcCompressScratch& scratch, DgcStrips& strips) {
  each_block_by_warp(a.table, [&](int64_t block, int segment) {
    const DgcSegment& s = a.table.segments[segment];
    const DgcLaneStrips mine(scratch, s, block);
    const DgcAim aim = aim_at(a.guesses[segment], s);
    const unsigned collected = scratch.collected[segment], k = static_cast<unsigned>(s.k);
    const bool usable = collected >= k && collected <= aim.limit;
    const unsigned* histogram = scratch.guess_histogram + segment * kDgcGuessBins;
    DgcBin cut{0, 0};
    if (usable) cut = find_guess_bin(histogram, collected, k);
    if (block == s.first_block) {
      DgcSegmentRecord record{usable, k - cut.above, __uint_as_float(aim.guess), 1};
      const auto wanted = static_cast<unsigned>(list_length(s.k));
      if (usable && wanted <= collected) {
        const DgcBin lowest = find_guess_bin(histogram, collected, wanted);
        record.lowest = __uint_as_float(smallest_in_bin(lowest.bin, aim.guess));
        record.is_short = 0;
      }
      if (lane() == 0) scratch.segments[segment] = record;
    }
    if (!usable) return;

    unsigned sure = 0;
    each_candidate(mine, keys_of(scratch, s, segment), strips, [&](const uint64_t(&keys)[kDgcKeysAtOnce]) {
#pragma unroll
      for (const uint64_t key : keys) {
        if (key == 0) continue;
        const unsigned bin = guess_bin(key_magnitude(key), aim.guess);
        if (bin > cut.bin) ++sure;
        if (bin != cut.bin) continue;
        const unsigned to = atomicAdd(&scratch.ties[segment], 1u);
        if (to < kDgcTies) scratch.tie_keys[segment * int64_t{kDgcTies} + to] = key;
      }
    });
    sure = warp_sum(sure);
    if (lane() == 0) scratch.sure[block] = sure;
  });
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

// Returns the need-th largest of `count` keys, which all differ. Its bits are found from the highest that is not the
// same in all keys down to where no other key has the same bits. The highest bit of a key is 0.
__device__ inline uint64_t nth_largest(const uint64_t* keys, unsigned count, unsigned need) {
  const unsigned first = static_cast<unsigned>(lane());
  const uint64_t any = keys[0];
  uint64_t differ = 0;
  for (unsigned i = first; i < count; i += 32) differ |= keys[i] ^ any;
  int known = 64 - __clzll(static_cast<long long>(warp_or(differ)));  // the bits from here on are known
  uint64_t top = any >> known;
  for (unsigned alike = count; alike > 1;) {  // so many keys have these bits
    --known;
    const uint64_t with_one = top << 1 | 1;
    unsigned ones = 0;
    for (unsigned i = first; i < count; i += 32) ones += keys[i] >> known == with_one;
    ones = warp_sum(ones);
    const bool is_one = need <= ones;
    top = is_one ? with_one : with_one - 1;
    alike = is_one ? ones : alike - ones;
    if (!is_one) need -= ones;
  }
  uint64_t found = 0;
  for (unsigned i = first; i < count; i += 32) {
    if (keys[i] >> known == top) found = keys[i];
  }
  return warp_or(found);
}

// Sends what is sent of a block whose segment is listed.
__device__ inline void emit_listed_block(const DgcCompressArgs& a, const DgcCompressScratch& scratch, int segment,
                                         int64_t block, DgcStrips& strips) {
  const DgcSegment& s = a.table.segments[segment];
  const DgcLaneStrips mine(scratch, s, block);
  const DgcSegmentRecord record = scratch.segments[segment];
  const uint64_t* ties = scratch.tie_keys + segment * int64_t{kDgcTies};
  const unsigned count = scratch.ties[segment];
  const int64_t local = block - s.first_block;
  const uint64_t cut = nth_largest(ties, count, record.need);

  unsigned before = 0;  // entries of the blocks before this one
#pragma unroll 8
  for (int64_t b = s.first_block + lane(); b < block; b += 32) before += scratch.sure[b];
  for (unsigned i = static_cast<unsigned>(lane()); i < count; i += 32) {
    before += ties[i] >= cut && key_index(ties[i]) / kDgcBlock < local;
  }
  unsigned entry = warp_sum(before);

  const DgcEmitter emitter(a, s);
  each_candidate(mine, keys_of(scratch, s, segment), strips, [&](const uint64_t(&keys)[kDgcKeysAtOnce]) {
    float values[kDgcKeysAtOnce];  // loaded before anything is written, so that the loads do not wait for each other
#pragma unroll
    for (int j = 0; j < kDgcKeysAtOnce; ++j) {
      if (keys[j] >= cut) values[j] = emitter.value(key_index(keys[j]));
    }
#pragma unroll
    for (int j = 0; j < kDgcKeysAtOnce; ++j) {
      const unsigned sent = __ballot_sync(kAllLanes, keys[j] >= cut);
      if (keys[j] >= cut) {
        emitter.write(entry + static_cast<unsigned>(__popc(sent & lanes_before())), key_index(keys[j]), values[j]);
      }
      entry += static_cast<unsigned>(__popc(sent));
    }
  });
  if (lane() == 0) emitter.end_block(local, entry);
  if (lane() == 0 && local == 0) {
    const float threshold = __uint_as_float(key_magnitude(cut));
    remember(a.guesses[segment], s, threshold, tail_of(record.lowest, threshold, record.is_short != 0), true);
  }
}

__device__ inline void emit_listed(const DgcCompressArgs& a, const DgcCompressScratch& scratch, DgcStrips& strips) {
  each_block_by_warp(a.table, [&](int64_t block, int segment) {
    if (is_listed(scratch, segment)) emit_listed_block(a, scratch, segment, block, strips);
  });
}

}  // namespace dgc::cuda
