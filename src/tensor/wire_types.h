#pragma once

#include <cstdint>

namespace dgc {

// What the kernels that fill a message and the folder that carries it must agree on.

// Block of elements that one set of 16-bit offsets can address.
inline constexpr int64_t kDgcBlock = 65536;

enum class WireValues : uint16_t { fp32 = 0, fp16 = 1 };  // the numbers are on the wire

constexpr int64_t wire_value_bytes(WireValues values) { return values == WireValues::fp32 ? 4 : 2; }
constexpr int64_t dgc_blocks(int64_t numel) { return (numel + kDgcBlock - 1) / kDgcBlock; }

}  // namespace dgc
