#include <omp.h>

#include <algorithm>
#include <bit>

#include "kernels/cpu/dgc_select.h"
#include "tensor/simd.h"

// Exact selection over v. The k-th largest magnitude is found by counting its digits of 11, 10 and 10 bits. Then every
// block counts what it will send, and these counts say where in the message each block writes.
namespace dgc {
namespace {

struct Digit {
  int shift;
  int bits;
};
constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};

struct Cut {
  int32_t magnitude = 0;  // of the k-th largest
  int64_t ties = 0;       // how many elements of exactly that magnitude are among the k, lowest indices first
};

// Counts a digit of the elements whose higher digits are `prefix`. Two histograms take turns, because neighbours often
// fall into the same bin, and an increment would wait for the one before it.
void count_digit(const float* v, int64_t n, Digit digit, int32_t prefix, DgcThreadScratch& mine) {
  const int32_t mask = (1 << digit.bits) - 1;
  const auto count = [&](float value, size_t which) {
    const int32_t magnitude = magnitude_bits(value);
    if (magnitude >> (digit.shift + digit.bits) != prefix) return;
    ++mine.histogram[which][static_cast<size_t>(magnitude >> digit.shift & mask)];
  };
  int64_t i = 0;
  for (; i + 1 < n; i += 2) {
    count(v[i], 0);
    count(v[i + 1], 1);
  }
  if (i < n) count(v[i], 0);
}

DGC_MULTIVERSION DgcBlockCount count_block(const float* v, int64_t n, int32_t cut) {
  int32_t above = 0, equal = 0;  // a block has 65,536 elements
  for (int64_t i = 0; i < n; ++i) {
    const int32_t magnitude = magnitude_bits(v[i]);
    above += magnitude > cut;
    equal += magnitude == cut;
  }
  return {above, equal};
}

constexpr int64_t kRadixGroup = 64;

// Which of up to kRadixGroup elements have at least a magnitude, without a branch: that of one in four is hard to
// foretell.
DGC_MULTIVERSION int find_in_group(const float* v, int64_t n, int32_t lowest, uint8_t* found) {
  int count = 0;
  for (int64_t i = 0; i < n; ++i) {
    found[count] = static_cast<uint8_t>(i);
    count += magnitude_bits(v[i]) >= lowest;
  }
  return count;
}

struct Blocks {
  const float* v;
  int64_t numel;
  int64_t count;
  const float* begin(int64_t b) const { return v + b * kDgcBlock; }
  int64_t size(int64_t b) const { return std::min(kDgcBlock, numel - b * kDgcBlock); }
};

Cut find_cut(const Blocks& blocks, int64_t k, DgcScratch& scratch, int threads) {
  int32_t prefix = 0;
  int64_t left = k;  // of the elements that share the prefix, this many are among the k largest
  for (const Digit digit : kDigits) {
    for (DgcThreadScratch& thread : scratch.threads) {
      for (auto& histogram : thread.histogram) histogram.fill(0);
    }
#pragma omp parallel for schedule(static) num_threads(threads) if (blocks.count > 1)
    for (int64_t b = 0; b < blocks.count; ++b) {
      count_digit(blocks.begin(b), blocks.size(b), digit, prefix,
                  scratch.threads[static_cast<size_t>(omp_get_thread_num())]);
    }
    for (int32_t bin = (1 << digit.bits) - 1;; --bin) {
      int64_t here = 0;
      for (const DgcThreadScratch& thread : scratch.threads) {
        for (const auto& histogram : thread.histogram) here += histogram[static_cast<size_t>(bin)];
      }
      if (here >= left) {
        prefix = prefix << digit.bits | bin;
        break;
      }
      left -= here;
    }
  }
  return {prefix, left};
}

}  // namespace

DgcSelected dgc_select_by_radix(const DgcCompressArgs& args, int segment, DgcScratch& scratch, int threads) {
  const DgcSegment& s = args.table.segments[segment];
  const Blocks blocks{args.v + s.offset, s.numel, s.blocks()};
  const Cut cut = find_cut(blocks, s.k, scratch, threads);

  scratch.counts.resize(std::max(scratch.counts.size(), static_cast<size_t>(blocks.count)));
  DgcBlockCount* counts = scratch.counts.data();
#pragma omp parallel for schedule(static) num_threads(threads) if (blocks.count > 1)
  for (int64_t b = 0; b < blocks.count; ++b) counts[b] = count_block(blocks.begin(b), blocks.size(b), cut.magnitude);

  // From here on counts[b] counts what the blocks before b send.
  DgcBlockCount before;
  for (int64_t b = 0; b < blocks.count; ++b) {
    const DgcBlockCount here = counts[b];
    counts[b] = before;
    before.above += here.above;
    before.equal += here.equal;
  }

  const DgcEmitter emitter(args, s);
#pragma omp parallel for schedule(static) num_threads(threads) if (blocks.count > 1)
  for (int64_t b = 0; b < blocks.count; ++b) {
    const float* v = blocks.begin(b);
    int64_t ties = std::min(counts[b].equal, cut.ties);  // sent before this block, then before this element
    int64_t entry = counts[b].above + ties;
    for (int64_t first = 0; first < blocks.size(b); first += kRadixGroup) {
      uint8_t found[kRadixGroup];
      const int count = find_in_group(v + first, std::min(kRadixGroup, blocks.size(b) - first), cut.magnitude, found);
      for (int c = 0; c < count; ++c) {
        const int64_t i = first + found[c];
        if (magnitude_bits(v[i]) == cut.magnitude && ties++ >= cut.ties) continue;
        emitter.emit(entry++, b * kDgcBlock + i);
      }
    }
    emitter.end_block(b, entry);
  }
  return {std::bit_cast<float>(cut.magnitude)};
}

}  // namespace dgc
