#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dgc {

// Ways to write k of numel entries. `dgc plan` compares them; the two block16 formats are what messages use (wire.h).
enum class WireFormat {
  paper48,       // "paper48": 32-bit value + 16-bit run length of zeros, as the paper counts it
  fp32_int32,    // "fp32+int32": 32-bit value + 32-bit index
  fp32_block16,  // "fp32+block16": wire.h
  fp16_block16,  // "fp16+block16": wire.h
  fp16_rice,     // "fp16+rice": 16-bit value + Rice-coded gap, expected size for randomly spread entries
};

inline constexpr std::array kWireFormats = {WireFormat::paper48, WireFormat::fp32_int32, WireFormat::fp32_block16,
                                            WireFormat::fp16_block16, WireFormat::fp16_rice};

std::string_view wire_format_name(WireFormat format);

// Bytes of one tensor's part of a message, without the header. 1 <= k <= numel.
int64_t wire_bytes(WireFormat format, int64_t numel, int64_t k);

// Expected bits of one gap between kept entries under the best Rice code, when each element is kept with chance k /
// numel. A gap g costs floor(g / 2^b) + 1 + b bits, and for geometric gaps E[floor(g / M)] = q^M / (1 - q^M), q = 1 - k
// / numel.
double rice_bits(int64_t numel, int64_t k);

}  // namespace dgc
