#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/wire_types.h"

namespace dgc {

// A message is what one worker sends in one step: a header and a payload, little-endian throughout.
//
//   header, 48 bytes:  0 u32 magic "DGCM"    4 u16 version     6 u16 value type   8 u32 worker   12 u32 tensors
//                     16 u64 step           24 u64 payload bytes   32 u64 entries (sum of k)     40 u64 checksum
//   payload, per tensor in order, in index order within a tensor:
//     block_ends  u32 [ceil(numel / 65536)]  entries up to and with this block; the last one is k
//     offsets     u16 [k]                    index within its block
//     values      fp32 or fp16 [k]
//   Each array starts aligned to its element, the payload is padded to a multiple of 16; gaps are zero.
//
// The checksum is XXH3-64 of the payload, seeded with XXH3-64 of the header's first 40 bytes.
// The size depends on (numel, k) alone, so every worker's message has the same size, known before the step.
inline constexpr size_t kWireHeaderBytes = 48;

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
  int64_t entries() const { return entries_; }
  size_t payload_bytes() const { return payload_bytes_; }
  size_t message_bytes() const { return kWireHeaderBytes + payload_bytes_; }

 private:
  std::vector<WireTensor> tensors_;
  WireValues values_ = WireValues::fp32;
  int64_t entries_ = 0;
  size_t payload_bytes_ = 0;
};

// Writes header and checksum in front of a payload that is already in place (message + kWireHeaderBytes).
void seal_message(std::span<std::byte> message, const WireLayout& layout, uint64_t step, uint32_t worker);

// Returns the payload of a message in which every index can be trusted. Throws UserError that names the worker and step
// and what is wrong: size, magic, version, a stale step, a foreign worker, another layout, checksum, indices.
std::span<const std::byte> open_message(std::span<const std::byte> message, const WireLayout& layout, uint64_t step,
                                        uint32_t worker);

}  // namespace dgc
