#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace dgc {

// One block of one segment: the unit of work. Blocks are fixed, so results do not depend on who worked on which.
struct DgcChunk {
  int32_t segment = 0;
  int32_t block = 0;
  int32_t thread = 0;  // the thread whose list holds the block's candidates
  uint32_t count = 0;  // number of candidates, which are in the order of indices
  size_t first = 0;    // position of the first candidate in the list
};

struct DgcSegmentState {
  int32_t guess = 0;                   // elements whose magnitude bits are at least this are collected
  int64_t limit = 0;                   // more candidates than this are not worth collecting; 0: no guess
  std::atomic<int64_t> collected = 0;  // candidates that all chunks have collected
};

// What the radix selection counts in each block.
struct DgcBlockCount {
  int64_t above = 0;  // magnitudes above the threshold
  int64_t equal = 0;  // magnitudes that equal the threshold
};

struct DgcThreadScratch {
  std::vector<uint64_t> list;  // candidates of this thread's chunks, one chunk after another
  size_t used = 0;
  std::vector<uint64_t> keys;  // one segment's candidates, to be partitioned
  std::array<std::array<uint32_t, 2048>, 2> histogram{};
};

// What the DGC step keeps between calls, so that a steady step does not allocate.
struct DgcScratch {
  std::vector<DgcChunk> chunks;
  std::unique_ptr<DgcSegmentState[]> segments;
  size_t segment_capacity = 0;
  std::vector<DgcThreadScratch> threads;
  std::vector<DgcBlockCount> counts;
  std::vector<int32_t> dealt;  // number of entries that dgc_deal has dealt to each owner
};

}  // namespace dgc
