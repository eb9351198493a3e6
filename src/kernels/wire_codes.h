#pragma once

#include <bit>
#include <cstdint>

#include "tensor/half.h"
#include "tensor/wire_types.h"

// How one value or one index is encoded (docs/wire_format.md). The functions are constexpr, so that the kernels of
// every backend use this code and write the same bits.
namespace dgc {

inline constexpr uint32_t kWireNan = 0x7fc00000;
inline constexpr uint32_t kInfinityBits = 0x7f800000;

constexpr uint32_t wire_magnitude(float v) { return std::bit_cast<uint32_t>(v) & 0x7fffffffu; }
constexpr bool wire_finite(float v) { return wire_magnitude(v) < kInfinityBits; }
// Every NaN travels as kWireNan, because backends make different NaNs.
constexpr float wire_value(float v) { return v == v ? v : std::bit_cast<float>(kWireNan); }

// --- Values. v is replaced by the number that its code stands for, and v - that number goes back to where v came from.
//
// That difference is exact, so that nothing is lost: in every format the code stands for a multiple of ulp(v) whose
// distance from v is at most |v| (zero is in each format, and nothing farther away than it is chosen). A multiple of
// ulp(v) that is at most |v| has 24 significant bits. Why it is a multiple:
//   fp16  Its numbers near v are at least 2^13 ulp(v) apart, or all multiples of 2^-24 where v is below 2^-14. 65504 is
//         a multiple of 2^5, thus of ulp(v) up to |v| < 2^29; from there on 0 is sent and v stays whole.
//   bf16  Its numbers near v are 2^16 ulp(v) apart, where v is clamped too.
//   int8  q * scale, |q| <= 127. With e the scale's exponent: the scale has 8 significant bits, so it is a multiple of
//         2^(e-7), and |v| < 128 * 2^(e+1), so ulp(v) <= 2^(e-16).
// A v that is not finite is sent as it is, so that the weights show it, and 0 goes back.

constexpr uint16_t half_code(float v) {
  constexpr float kLargest = 65504;
  if (wire_finite(v)) {
    if (v >= 0x1p29f || v <= -0x1p29f) return 0;
    if (v > kLargest) return float_to_half(kLargest);
    if (v < -kLargest) return float_to_half(-kLargest);
  }
  return float_to_half(v);
}

constexpr uint16_t bf16_code(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  if (!wire_finite(v)) return static_cast<uint16_t>(bits >> 16);
  const auto rounded = static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  return (rounded & 0x7fffu) == 0x7f80u ? static_cast<uint16_t>(rounded - 1)
                                        : rounded;  // beyond the largest finite number: that number
}

inline constexpr uint8_t kInt8Nan = 0x80;  // -128; infinities are sent as this code too

// The scale of a tensor whose largest finite magnitude is `largest`: largest / 127, rounded up to 8 significant bits,
// but at least 2^-126 and at most 2^120, so that the scale and its products with codes are normal numbers.
constexpr float int8_scale(float largest) {
  const float wanted = largest / 127;
  const auto up = std::bit_cast<float>((std::bit_cast<uint32_t>(wanted) + 0xffffu) & 0xffff0000u);
  return up < 0x1p-126f ? 0x1p-126f : up > 0x1p120f ? 0x1p120f : up;
}

constexpr uint8_t int8_code(float v, float scale) {
  if (!wire_finite(v)) return kInt8Nan;
  const float steps = v / scale;
  const float clamped = steps > 127 ? 127.f : steps < -127 ? -127.f : steps;
  // A float this large has steps of 1: the addition rounds to nearest even.
  constexpr float kRound = 0x1.8p23f;
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(clamped + kRound) - std::bit_cast<uint32_t>(kRound));
}

// `scale`: where has_scale(values).
constexpr uint32_t value_code(WireValues values, float v, float scale) {
  switch (values) {
    case WireValues::fp32:
      return std::bit_cast<uint32_t>(wire_value(v));
    case WireValues::fp16:
      return half_code(wire_value(v));
    case WireValues::bf16:
      return bf16_code(wire_value(v));
    case WireValues::int8:
      return int8_code(v, scale);
  }
  return 0;
}

constexpr float value_of(WireValues values, uint32_t code, float scale) {
  float v = 0;
  switch (values) {
    case WireValues::fp32:
      v = std::bit_cast<float>(code);
      break;
    case WireValues::fp16:
      v = half_to_float(static_cast<uint16_t>(code));
      break;
    case WireValues::bf16:
      v = std::bit_cast<float>(code << 16);
      break;
    case WireValues::int8: {
      if (code == kInt8Nan) return std::bit_cast<float>(kWireNan);
      v = static_cast<float>(static_cast<int8_t>(code)) * scale;
      break;
    }
  }
  return wire_value(v);
}

// --- Indices.

// run16: a word below kLongRun is the number of elements between the previous entry and this entry. The word kLongRun
// says that the next kLongRun elements are not sent; another word follows before the next entry.
inline constexpr uint32_t kLongRun = 65535;

// rice: let x be the index of entry i of a tensor, and z = x - i the number of elements before x that are not sent. One
// stream holds the low b bits of z at bit i * b; in the other stream bit (z >> b) + i is set. That is a Rice code:
// between two set bits lie as many zeros as z >> b grows. The entries can be decoded independently of each other.
constexpr uint32_t low_bits_of(uint32_t x, int b) { return x & ((uint32_t{1} << b) - 1); }  // 0 <= b <= 31

// Reads `bits` bits from bit `at` on, 0 <= bits <= 31. A bit stream is an array of words, where bit 0 is the lowest bit
// of the first word. Words beyond the last bit are not read.
constexpr uint32_t bits_at(const uint32_t* words, uint64_t at, int bits) {
  if (bits == 0) return 0;
  const uint32_t* word = words + at / 32;
  const int shift = static_cast<int>(at % 32);
  uint64_t both = word[0];
  if (shift + bits > 32) both |= static_cast<uint64_t>(word[1]) << 32;
  return low_bits_of(static_cast<uint32_t>(both >> shift), bits);
}

}  // namespace dgc
