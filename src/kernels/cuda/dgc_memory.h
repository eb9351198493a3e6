#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/carver.h"
#include "kernels/cuda/dgc_scratch.h"
#include "tensor/device.h"

namespace dgc::cuda {

template <typename T>
void take(Carver& carver, T*& array, int64_t count) {
  array = carver.take<T>(count);
}

inline size_t carve(void* memory, int64_t blocks, int64_t count, int64_t pieces, DgcCompressScratch& to) {
  Carver carver(memory);
  take(carver, to.keys, kDgcKeysPerBlock * blocks + kDgcKeysPerSegment * count);
  take(carver, to.strips, blocks * kDgcStrips);
  take(carver, to.sure, blocks);
  take(carver, to.counts, blocks);
  take(carver, to.segments, count);
  take(carver, to.tie_keys, count * kDgcTies);
  take(carver, to.hashes, pieces);
  take(carver, to.collected, count);
  take(carver, to.ties, count);
  take(carver, to.guess_histogram, count * kDgcGuessBins);
  take(carver, to.radix_histogram, count * kDgcRadixBins);
  take(carver, to.drawn, 1);
  take(carver, to.ticket, 1);
  return carver.bytes();
}

inline size_t carve(void* memory, int64_t hashes, DgcApplyScratch& to) {
  Carver carver(memory);
  take(carver, to.hashes, hashes);
  take(carver, to.fault, 1);
  take(carver, to.ticket, 1);
  return carver.bytes();
}

inline size_t carve(void* memory, int64_t count, int64_t pieces, DgcEncodeScratch& to) {
  Carver carver(memory);
  take(carver, to.hashes, pieces);
  take(carver, to.largest, count);
  take(carver, to.ticket, 1);
  return carver.bytes();
}

inline size_t carve(void* memory, int64_t sums, DgcDecodeScratch& to) {
  Carver carver(memory);
  take(carver, to.sums, sums);
  return carver.bytes();
}

// Device memory that the DGC ops keep between calls. Memory is allocated only when a larger table or message comes.
class DgcScratch {
 public:
  explicit DgcScratch(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  const DgcCompressScratch& compress(const DgcTable& table, uint64_t payload_bytes);
  const DgcEncodeScratch& encode(const DgcTable& table, uint64_t payload_bytes);
  const DgcDecodeScratch& decode(int32_t workers, int64_t chunks);
  const DgcApplyScratch& apply(int32_t workers, uint64_t payload_bytes);

  // How many blocks of each cooperative kernel fit on the GPU at once; 0 until the first call asks.
  int64_t compress_blocks = 0, encode_blocks = 0, decode_blocks = 0, apply_blocks = 0, undeal_blocks = 0;

 private:
  // Makes `memory` as large as `carve_into` counts. New memory is zeroed. Where rounding leaves the size as it was, the
  // memory is kept: no array ever shrinks, so each begins where it began, and what one has grown by was a gap of zeros.
  template <typename Carve>
  void grow(Buffer& memory, const Carve& carve_into) {
    carve_into(at_least(carve_into(nullptr), memory, device_, MemoryUse::scratch));
  }

  std::shared_ptr<Device> device_;
  // What the memory is large enough for. There is none at first, and where nothing is compressed it has no byte later.
  int64_t blocks_ = -1, count_ = -1, pieces_ = -1, encode_count_ = -1, encode_pieces_ = -1, sums_ = -1, hashes_ = -1;
  Buffer compress_memory_, encode_memory_, decode_memory_, apply_memory_;
  DgcCompressScratch compress_{};
  DgcEncodeScratch encode_{};
  DgcDecodeScratch decode_{};
  DgcApplyScratch apply_{};
};

inline const DgcCompressScratch& DgcScratch::compress(const DgcTable& table, uint64_t payload_bytes) {
  const int64_t pieces = wire_pieces(payload_bytes);
  if (table.blocks > blocks_ || table.count > count_ || pieces > pieces_) {
    blocks_ = std::max(blocks_, table.blocks);
    count_ = std::max(count_, int64_t{table.count});
    pieces_ = std::max(pieces_, pieces);
    grow(compress_memory_, [&](void* memory) { return carve(memory, blocks_, count_, pieces_, compress_); });
  }
  return compress_;
}

inline const DgcEncodeScratch& DgcScratch::encode(const DgcTable& table, uint64_t payload_bytes) {
  const int64_t pieces = wire_pieces(payload_bytes);
  if (table.count > encode_count_ || pieces > encode_pieces_) {
    encode_count_ = std::max(encode_count_, int64_t{table.count});
    encode_pieces_ = std::max(encode_pieces_, pieces);
    grow(encode_memory_, [&](void* memory) { return carve(memory, encode_count_, encode_pieces_, encode_); });
  }
  return encode_;
}

inline const DgcDecodeScratch& DgcScratch::decode(int32_t workers, int64_t chunks) {
  const int64_t sums = workers * chunks;
  if (sums > sums_) {
    sums_ = std::max(sums_, sums);
    grow(decode_memory_, [&](void* memory) { return carve(memory, sums_, decode_); });
  }
  return decode_;
}

inline const DgcApplyScratch& DgcScratch::apply(int32_t workers, uint64_t payload_bytes) {
  const int64_t hashes = workers * wire_pieces(payload_bytes);
  if (hashes > hashes_) {
    hashes_ = std::max(hashes_, hashes);
    grow(apply_memory_, [&](void* memory) { return carve(memory, hashes_, apply_); });
  }
  return apply_;
}

}  // namespace dgc::cuda
