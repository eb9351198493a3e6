#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace dgc {

// The order of |v|: the 31 bits below the sign. Non-finite values rank above all others.
inline int32_t magnitude_bits(float value) { return std::bit_cast<int32_t>(value) & 0x7fffffff; }

// An element as one number, which orders by magnitude (larger first) and then by index (lower first). All keys of a
// tensor differ.
inline uint64_t selection_key(int32_t magnitude, uint32_t index) {
  return uint64_t{static_cast<uint32_t>(magnitude)} << 32 | ~index;
}
inline int32_t key_magnitude(uint64_t key) { return static_cast<int32_t>(key >> 32); }
inline uint32_t key_index(uint64_t key) { return ~static_cast<uint32_t>(key); }

// What accumulates one step into a chunk of u and v (kernels/dgc_args.h has the formulas).
struct DgcAccumulateArgs {
  const float* g = nullptr;
  float* u = nullptr;
  float* v = nullptr;
  const float* u_from = nullptr;  // what u and v are read from: u and v themselves, or other arenas
  const float* v_from = nullptr;
  size_t n = 0;
  float scale = 1;
  float momentum = 0;
  int32_t guess = 0;         // elements with magnitude_bits(v) >= guess are collected
  uint64_t* keys = nullptr;  // [n] gets the collected elements, in the order of indices; null: none are collected
  uint32_t first_index = 0;  // index of the chunk's first element in its tensor
};

// Each function returns how many elements it collected. It reads 12 and writes 8 bytes per element (plain: 8 and 4).
uint32_t dgc_accumulate_momentum(const DgcAccumulateArgs&);  // u = m u + g'; v = v + u
uint32_t dgc_accumulate_nesterov(const DgcAccumulateArgs&);  // u = m (u + g'); v = (v + u) + g'
uint32_t dgc_accumulate_plain(const DgcAccumulateArgs&);     // v = v + g'

}  // namespace dgc
