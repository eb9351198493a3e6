#pragma once

#include <cstdint>

#include "kernels/cpu/dgc_accumulate.h"
#include "kernels/cpu/dgc_scratch.h"
#include "kernels/dgc_args.h"

namespace dgc {

// Writes one segment's part of a message, entry by entry in the order of indices, and sets v (and u) to 0 there.
class DgcEmitter {
 public:
  DgcEmitter(const DgcCompressArgs& args, const DgcSegment& segment);

  // The entry-th of the segment's k entries is the element with this index in the segment.
  void emit(int64_t entry, int64_t index) const;
  void end_block(int64_t block, int64_t entries_so_far) const {
    block_ends_[block] = static_cast<uint32_t>(entries_so_far);
  }

 private:
  float* u_;  // null where momentum is not masked
  float u_share_;
  float* v_;
  uint32_t* block_ends_;
  uint16_t* offsets_;
  float* values_;
};

// What the next guess needs to know about a selection (kernels/dgc_args.h).
struct DgcSelected {
  float threshold = 0;
  float tail = DgcGuess{}.tail;
};

// Selects the k largest from a short list that is known to hold them.
DgcSelected dgc_select_from_list(const DgcCompressArgs&, int segment, const DgcScratch&, DgcThreadScratch& mine);

// Selects the k largest of v itself, whatever v holds, in five parallel passes over the segment.
DgcSelected dgc_select_by_radix(const DgcCompressArgs&, int segment, DgcScratch&, int threads);

}  // namespace dgc
