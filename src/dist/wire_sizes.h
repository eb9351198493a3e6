#pragma once

#include <cstdint>

#include "tensor/wire_types.h"

// Lengths of the parts of a tensor's indices. They follow from numel and k (1 <= k <= numel < 2^32) alone, whatever the
// indices are, so all workers' messages are equally long.
namespace dgc {

// Bytes by the paper's count: 32-bit values and 16-bit run lengths of zeros.
constexpr int64_t paper48_bytes(int64_t k) { return 6 * k; }

// Words of 16 bits: one per entry, and one for every 65,535 zeros in a row. Usually the last words are not used.
constexpr int64_t run16_words(int64_t numel, int64_t k) { return k + (numel - k) / 65535; }

// Bits of the stream of quotients when remainders have b bits: the last entry's bit is at most the last of these.
constexpr int64_t rice_high_bits(int64_t numel, int64_t k, int b) { return k + ((numel - k) >> b); }

// The b that makes k * b + rice_high_bits(numel, k, b) smallest, the lower of two equals. At k = 0.1 % of numel it is
// 9, which takes 11.95 bits per entry.
constexpr int rice_low_bits(int64_t numel, int64_t k) {
  int best = 0;
  for (int b = 1; b < 32; ++b) {
    if (k * b + rice_high_bits(numel, k, b) < k * best + rice_high_bits(numel, k, best)) best = b;
  }
  return best;
}

}  // namespace dgc
