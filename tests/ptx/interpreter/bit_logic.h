#pragma once

#include <cstdint>

// Instructions on bits that PTX and machine code share.
namespace dgc::ptx {

// The bytes of b:a that the four nibbles of the selector name; 8 beside a number repeats the byte's sign.
constexpr uint32_t permuted(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t select = selector >> 4 * i & 15;
    uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (select & 7)) & 255;
    if ((select & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

// Any function of three bits, which the table holds, for each of the 32.
constexpr uint32_t looked_up(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if ((table >> i & 1) == 0) continue;
    result |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  }
  return result;
}

}  // namespace dgc::ptx
