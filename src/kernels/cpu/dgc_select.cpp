#include "kernels/cpu/dgc_select.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "kernels/dgc_guess.h"
#include "kernels/wire_codes.h"

namespace dgc {

DgcEmitter::DgcEmitter(const DgcCompressArgs& args, const DgcSegment& segment)
    : u_(args.momentum_correction && args.factor_masking ? args.u + segment.offset : nullptr),
      u_share_(args.u_share),
      v_(args.v + segment.offset),
      block_ends_(reinterpret_cast<uint32_t*>(args.message + kWireHeaderBytes + segment.block_ends_at)),
      offsets_(reinterpret_cast<uint16_t*>(args.message + kWireHeaderBytes + segment.offsets_at)),
      values_(reinterpret_cast<float*>(args.message + kWireHeaderBytes + segment.values_at)) {}

void DgcEmitter::emit(int64_t entry, int64_t index) const {
  float& v = v_[index];
  offsets_[entry] = static_cast<uint16_t>(index % kDgcBlock);
  values_[entry] = wire_value(u_share_ == 0 ? v : std::fma(u_share_, u_[index], v));
  v = 0;
  if (u_ != nullptr) u_[index] = 0;
}

DgcSelected dgc_select_from_list(const DgcCompressArgs& args, int segment, const DgcScratch& scratch,
                                 DgcThreadScratch& mine) {
  const DgcSegment& s = args.table.segments[segment];
  const DgcSegmentState& state = scratch.segments[static_cast<size_t>(segment)];
  const DgcChunk* chunks = &scratch.chunks[static_cast<size_t>(s.first_block)];
  const auto candidates = [&](const DgcChunk& chunk) {
    return scratch.threads[static_cast<size_t>(chunk.thread)].list.begin() + static_cast<std::ptrdiff_t>(chunk.first);
  };

  mine.keys.resize(std::max(mine.keys.size(), static_cast<size_t>(state.collected)));  // grows in the first steps only
  auto end = mine.keys.begin();
  for (int64_t b = 0; b < s.blocks(); ++b) end = std::copy_n(candidates(chunks[b]), chunks[b].count, end);
  const auto begin = mine.keys.begin();
  const auto wanted = begin + std::min<std::ptrdiff_t>(list_length(s.k), end - begin);
  if (wanted < end) std::nth_element(begin, wanted - 1, end, std::greater<>());
  const uint64_t lowest = wanted < end ? *(wanted - 1) : *std::min_element(begin, end);
  std::nth_element(begin, begin + (s.k - 1), wanted, std::greater<>());
  const uint64_t cut = begin[s.k - 1];

  // All keys are different, so exactly k of them reach the cut, and the lists hold them in index order.
  const DgcEmitter emitter(args, s);
  int64_t entry = 0;
  for (int64_t b = 0; b < s.blocks(); ++b) {
    const auto first = candidates(chunks[b]);
    for (uint32_t c = 0; c < chunks[b].count; ++c) {
      if (first[c] >= cut) emitter.emit(entry++, key_index(first[c]));
    }
    emitter.end_block(b, entry);
  }
  DgcSelected selected;
  selected.threshold = std::bit_cast<float>(key_magnitude(cut));
  selected.tail = tail_of(std::bit_cast<float>(key_magnitude(lowest)), selected.threshold, wanted == end);
  return selected;
}

}  // namespace dgc
