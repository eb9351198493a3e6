// Exact selection over v, for the segments whose list of candidates is of no use, for example in the first steps, when
// k changes, when k is a large part of the tensor, or when a guess was wrong. The k-th largest magnitude is found by
// counting its digits of 11, 10 and 10 bits. Then every strip counts what it will send, and these counts say where in
// the message each strip writes. All such segments are worked on at the same time, with grid-wide barriers between the
// phases. v is read five times.
#pragma once

#include "kernels/cuda/dgc_candidates.cuh"

namespace dgc::cuda {

struct DgcDigit {
  int shift, bits, first_bin;
};
// A function returns the digits, because a table would lie in the host's memory.
__device__ inline DgcDigit radix_digit(int i) {
  return i == 0 ? DgcDigit{20, 11, 0} : i == 1 ? DgcDigit{10, 10, 2048} : DgcDigit{0, 10, 2048 + 1024};
}

struct DgcCut {
  unsigned magnitude;  // leading bits of the k-th largest magnitude, as many as the counted digits have
  unsigned ties;       // how many elements of exactly that magnitude are among the k, lowest indices first
};

// Computes the cut from the first `digits` digits, which have been counted.
__device__ inline DgcCut radix_cut(const unsigned* histograms, int64_t k, int digits, DgcShared& shared) {
  DgcCut cut{0, static_cast<unsigned>(k)};
  for (int i = 0; i < digits; ++i) {
    const DgcDigit digit = radix_digit(i);
    const DgcBin found = i == 0 ? find_bin<2048>(histograms, cut.ties, shared)
                                : find_bin<1024>(histograms + digit.first_bin, cut.ties, shared);
    cut = {cut.magnitude << digit.bits | found.bin, cut.ties - found.above};
  }
  return cut;
}

// Calls body(segment, number of the segment, block) for every block of every segment that needs the radix selection.
template <typename Body>
__device__ inline void each_unlisted_block(const DgcTable& table, const DgcCompressScratch& scratch, const Body& body) {
  for (int64_t block = blockIdx.x; block < table.blocks; block += gridDim.x) {
    const int segment = table.segment_of_block[block];
    if (!is_listed(scratch, segment)) body(table.segments[segment], segment, block);
  }
}

__device__ inline void count_digit(const DgcCompressArgs& a, const DgcCompressScratch& scratch, int which,
                                   DgcShared& shared) {
  const DgcDigit digit = radix_digit(which);
  const unsigned bins = 1u << digit.bits;
  each_unlisted_block(a.table, scratch, [&](const DgcSegment& s, int segment, int64_t block) {
    unsigned* histograms = scratch.radix_histogram + segment * int64_t{kDgcRadixBins};
    const unsigned prefix = radix_cut(histograms, s.k, which, shared).magnitude;
    for (unsigned i = threadIdx.x; i < bins; i += kDgcThreads) shared.histogram[i] = 0;
    __syncthreads();
    const int64_t first = (block - s.first_block) * kDgcBlock;
    const auto numel = static_cast<int>(smaller(kDgcBlock, s.numel - first));
    const float* v = a.v + s.offset + first;
    constexpr int kAtOnce = 16;  // loads that are under way at once
    for (int at = static_cast<int>(threadIdx.x); at < numel; at += kAtOnce * kDgcThreads) {
      unsigned magnitudes[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int i = at + j * kDgcThreads;
        magnitudes[j] = i < numel ? magnitude_bits(v[i]) : 0xffffffffu;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (magnitudes[j] == 0xffffffffu || magnitudes[j] >> (digit.shift + digit.bits) != prefix) continue;
        atomicAdd(&shared.histogram[magnitudes[j] >> digit.shift & (bins - 1)], 1u);
      }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < bins; i += kDgcThreads) {
      const unsigned count = shared.histogram[i];
      if (count != 0) atomicAdd(&histograms[digit.first_bin + static_cast<int>(i)], count);
    }
    // The bins that a thread clears for the next block are those that it has just read.
  });
}

__device__ inline int strip_numel(const DgcSegment& s, int64_t first) {
  const int64_t left = s.numel - first;
  return left > 0 ? static_cast<int>(smaller(left, kDgcStrip)) : 0;
}

// A lane's element of row `row` of a strip is element 32 * row + lane(). All loads are under way before the first
// result is used. Beyond the strip's end there are zeros.
inline constexpr int kStripRows = kDgcStrip / 32;
__device__ inline void load_rows_of_strip(const float* v, int numel, float (&to)[kStripRows]) {
  const float* const mine = v + lane();
  if (numel == kDgcStrip) {
#pragma unroll
    for (int row = 0; row < kStripRows; ++row) to[row] = mine[32 * row];
  } else {
    const int left = numel - lane();
#pragma unroll
    for (int row = 0; row < kStripRows; ++row) to[row] = 32 * row < left ? mine[32 * row] : 0.f;
  }
}

// Counts the elements of a strip that lie above the cut (`first`) and that equal it (`count`), for every lane of the
// warp.
__device__ inline DgcStripRecord count_strip(const float* v, int numel, unsigned cut) {
  float rows[kStripRows];
  load_rows_of_strip(v, numel, rows);
  unsigned counts = 0;  // both counts in one word; each is at most 512
#pragma unroll
  for (const float row : rows) {
    const unsigned magnitude = magnitude_bits(row);
    counts += (magnitude > cut ? 1u : 0u) + (magnitude == cut ? 0x10000u : 0u);
  }
  counts = warp_sum(counts);
  const unsigned beyond = cut == 0 ? static_cast<unsigned>(kDgcStrip - numel) : 0;
  return {counts & 0xffffu, (counts >> 16) - beyond};
}

__device__ inline void count_unlisted(const DgcCompressArgs& a, const DgcCompressScratch& scratch, DgcShared& shared) {
  each_unlisted_block(a.table, scratch, [&](const DgcSegment& s, int segment, int64_t block) {
    const unsigned* histograms = scratch.radix_histogram + segment * int64_t{kDgcRadixBins};
    const DgcCut cut = radix_cut(histograms, s.k, 3, shared);
    unsigned above_in_block = 0, equal_in_block = 0;  // counted by lane 0 of each warp
    for (int strip = warp(); strip < kDgcStrips; strip += kDgcWarps) {
      const int64_t first = (block - s.first_block) * kDgcBlock + strip * kDgcStrip;
      const DgcStripRecord record = count_strip(a.v + s.offset + first, strip_numel(s, first), cut.magnitude);
      if (lane() != 0) continue;
      scratch.strips[block * kDgcStrips + strip] = record;
      above_in_block += record.first;
      equal_in_block += record.count;
    }
    const unsigned above = block_sum(above_in_block, shared), equal = block_sum(equal_in_block, shared);
    if (threadIdx.x == 0) scratch.counts[block] = {above, equal};
  });
}

__device__ inline void emit_unlisted_block(const DgcCompressArgs& a, const DgcCompressScratch& scratch,
                                           const DgcSegment& s, int segment, int64_t block, DgcShared& shared) {
  const int64_t local = block - s.first_block;
  const DgcCut cut = radix_cut(scratch.radix_histogram + segment * int64_t{kDgcRadixBins}, s.k, 3, shared);
  DgcBlockRecord before{0, 0};
  for (int64_t b = s.first_block + threadIdx.x; b < block; b += kDgcThreads) {
    before.above += scratch.counts[b].above;
    before.equal += scratch.counts[b].equal;
  }
  before = {block_sum(before.above, shared), block_sum(before.equal, shared)};

  // For each strip, and for the block's end, strip_first becomes the number of elements above the cut, and strip_end
  // the number of elements equal to it, that lie before in the segment.
  DgcStripRecord mine{0, 0};
  if (threadIdx.x < kDgcStrips) mine = scratch.strips[block * kDgcStrips + threadIdx.x];
  const DgcScan above = block_scan(mine.first, shared), equal = block_scan(mine.count, shared);
  if (threadIdx.x <= kDgcStrips) {
    shared.strip_first[threadIdx.x] = before.above + above.before;
    shared.strip_end[threadIdx.x] = before.equal + equal.before;
  }
  __syncthreads();

  const DgcEmitter emitter(a, s);
  for (int strip = warp(); strip < kDgcStrips; strip += kDgcWarps) {
    unsigned tie = shared.strip_end[strip];
    const bool has_ties = shared.strip_end[strip + 1] > tie && tie < cut.ties;
    if (shared.strip_first[strip + 1] == shared.strip_first[strip] && !has_ties) continue;  // nothing to send
    unsigned entry = shared.strip_first[strip] + (tie < cut.ties ? tie : cut.ties);
    const int64_t first = local * kDgcBlock + strip * kDgcStrip;
    const int numel = strip_numel(s, first);
    const unsigned my_first = static_cast<unsigned>(first) + static_cast<unsigned>(lane());
    float v[kStripRows];
    load_rows_of_strip(a.v + s.offset + first, numel, v);
#pragma unroll
    for (int row = 0; row < kStripRows; ++row) {
      const unsigned magnitude = magnitude_bits(v[row]);
      // A zero beyond the tensor's end comes behind all ties that are sent.
      const bool is_tie = magnitude == cut.magnitude;
      const unsigned ties = __ballot_sync(kAllLanes, is_tie);
      const unsigned my_tie = tie + static_cast<unsigned>(__popc(ties & lanes_before()));
      const bool is_sent = magnitude > cut.magnitude || (is_tie && my_tie < cut.ties);
      const unsigned sent = __ballot_sync(kAllLanes, is_sent);
      if (is_sent) {
        const unsigned index = my_first + static_cast<unsigned>(32 * row);
        emitter.write(entry + static_cast<unsigned>(__popc(sent & lanes_before())), index,
                      emitter.value(index, v[row]));
      }
      tie += static_cast<unsigned>(__popc(ties));
      entry += static_cast<unsigned>(__popc(sent));
    }
  }
  if (threadIdx.x == 0) {
    const unsigned ties = before.equal + equal.total;
    emitter.end_block(local, before.above + above.total + (ties < cut.ties ? ties : cut.ties));
    if (local == 0) remember(a.guesses[segment], s, __uint_as_float(cut.magnitude), DgcGuess{}.tail, false);
  }
  // strip_first and strip_end are not written again before the next block's scans have synchronized.
}

__device__ inline void emit_unlisted(const DgcCompressArgs& a, const DgcCompressScratch& scratch, DgcShared& shared) {
  each_unlisted_block(a.table, scratch, [&](const DgcSegment& s, int segment, int64_t block) {
    emit_unlisted_block(a, scratch, s, segment, block, shared);
  });
}

}  // namespace dgc::cuda
