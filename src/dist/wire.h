#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/wire_types.h"

namespace dgc {

// A message is what one worker sends in an exchange: a header and a payload, little-endian throughout.
// docs/wire_format.md is the specification.
//
//   header, 48 bytes: struct WireHeader (tensor/wire_types.h)
//   payload, per tensor in order, in index order within a tensor; what an index format does not have is left out:
//              block16                  int32    run16                 rice
//     high     u32 [blocks], ends       -        -                     u32 [words], quotient bits
//     scale    fp32, with int8 values only
//     low      u16 [k], offsets         u32 [k]  u16 [run16_words()]   u32 [words], remainders of low_bits bits
//     values   fp32, fp16, bf16 or int8 [k]
//   Each array starts aligned to its element, each tensor to 4, the payload is padded to a multiple of 16; gaps are
//   zero.
//
// The size depends on (numel, k) alone, so every worker's message has the same size, known before the exchange.
// Messages are sealed and checked in their canonical form (kCanonicalWire), where they are made and read: in the
// kernels (kernels/dgc_args.h).

struct WireTensor {
  int64_t numel = 0;
  int64_t k = 0;                                                // 1 <= k <= numel
  size_t high_at = 0, scale_at = 0, low_at = 0, values_at = 0;  // bytes from the start of the payload
  int64_t words = 0;  // number of words that tell the entries apart: k, run16_words(), or words of quotients
  int low_bits = 0;   // bits of a remainder in rice
};

class WireLayout {
 public:
  WireLayout() = default;
  // Fills in the positions in `tensors`. Throws InternalError unless 1 <= k <= numel < 2^32.
  WireLayout(std::vector<WireTensor> tensors, WireFormat format);

  std::span<const WireTensor> tensors() const { return tensors_; }
  WireFormat format() const { return format_; }
  int64_t entries() const { return entries_; }
  size_t payload_bytes() const { return payload_bytes_; }
  size_t message_bytes() const { return kWireHeaderBytes + payload_bytes_; }

 private:
  std::vector<WireTensor> tensors_;
  WireFormat format_;
  int64_t entries_ = 0;
  size_t payload_bytes_ = 0;
};

// The header of a worker's messages, without step and checksum, when a canonical message travels as `format`.
WireHeader wire_header(const WireLayout& canonical, WireFormat format, uint32_t worker);

// For example "fp16+rice".
std::string wire_format_name(WireFormat format);

// One sentence: whose message in which step, and what is wrong with it.
std::string describe(const WireFault& fault, uint64_t step);

}  // namespace dgc
