#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/wire_types.h"

namespace dgc {

// A message is what one worker sends in one step: a header and a payload, little-endian throughout.
//
//   header, 48 bytes: struct WireHeader (tensor/wire_types.h)
//   payload, per tensor in order, in index order within a tensor:
//     block_ends  u32 [ceil(numel / 65536)]  entries up to and with this block; the last one is k
//     offsets     u16 [k]                    index within its block
//     values      fp32 or fp16 [k]
//   Each array starts aligned to its element, the payload is padded to a multiple of 16; gaps are zero.
//
// The size depends on (numel, k) alone, so every worker's message has the same size, known before the step. Messages
// are sealed and checked where they are made and read: in the kernels (kernels/dgc_args.h).

struct WireTensor {
  int64_t numel = 0;
  int64_t k = 0;                                            // 1 <= k <= numel
  size_t block_ends_at = 0, offsets_at = 0, values_at = 0;  // bytes from the start of the payload
};

class WireLayout {
 public:
  WireLayout() = default;
  // The positions in `tensors` are filled in. Throws InternalError unless 1 <= k <= numel < 2^32.
  WireLayout(std::vector<WireTensor> tensors, WireValues values);

  std::span<const WireTensor> tensors() const { return tensors_; }
  WireValues values() const { return values_; }
  WireHeader header(uint32_t worker) const;  // all but step and checksum
  int64_t entries() const { return entries_; }
  size_t payload_bytes() const { return payload_bytes_; }
  size_t message_bytes() const { return kWireHeaderBytes + payload_bytes_; }

 private:
  std::vector<WireTensor> tensors_;
  WireValues values_ = WireValues::fp32;
  int64_t entries_ = 0;
  size_t payload_bytes_ = 0;
};

// One sentence: whose message in which step, and what is wrong with it.
std::string describe(const WireFault& fault, uint64_t step);

}  // namespace dgc
