#pragma once

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <string>

#include "kernels/cuda/names.h"
#include "tensor/half.h"
#include "tests/emulation/execution.h"

// CUDA's names for g++, in the place of src/kernels/cuda/model.h: kernel bodies compile unchanged and run as fibers
// (tests/emulation/emulate.h). Only what bodies use is here, and only in the forms that CUDA has too.

inline void __syncthreads(std::source_location at = std::source_location::current()) {
  dgc::emulation::wait_for_block({"__syncthreads", at});
}
inline void __syncwarp(unsigned mask = 0xffffffffu, std::source_location at = std::source_location::current()) {
  dgc::emulation::wait_for_warp({"__syncwarp", at}, mask, 0);
}
inline void __threadfence() {}

inline unsigned __ballot_sync(unsigned mask, int predicate, std::source_location at = std::source_location::current()) {
  const auto& values = dgc::emulation::wait_for_warp({"__ballot_sync", at}, mask, predicate != 0);
  unsigned result = 0;
  for (unsigned lane = 0; lane < 32; ++lane) result |= static_cast<unsigned>(values[lane]) << lane;
  return result;
}
inline int __any_sync(unsigned mask, int predicate, std::source_location at = std::source_location::current()) {
  const auto& values = dgc::emulation::wait_for_warp({"__any_sync", at}, mask, predicate != 0);
  int result = 0;
  for (const uint64_t value : values) result |= static_cast<int>(value);
  return result;
}
inline int __all_sync(unsigned mask, int predicate, std::source_location at = std::source_location::current()) {
  const auto& values = dgc::emulation::wait_for_warp({"__all_sync", at}, mask, predicate == 0);
  int result = 0;
  for (const uint64_t value : values) result |= static_cast<int>(value);
  return result == 0;
}

namespace dgc::emulation {

// What lane `from` brought. A lane outside the mask has no value to give: on a GPU it would be anything.
template <typename T>
T shuffle(const Place& place, unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const auto& values = wait_for_warp(place, mask, bits);
  if ((mask >> from & 1) == 0) throw EmulationError(std::string(place.what) + " reads a lane outside its mask");
  std::memcpy(&value, &values[from], sizeof(T));
  return value;
}

}  // namespace dgc::emulation

// width cuts the warp into groups that exchange among themselves; whoever would read beyond its group keeps its own.
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              std::source_location at = std::source_location::current()) {
  const int me = static_cast<int>(threadIdx.x % 32), group = me / width * width;
  return dgc::emulation::shuffle({"__shfl_sync", at}, mask, value, static_cast<unsigned>(group + (lane & (width - 1))));
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 std::source_location at = std::source_location::current()) {
  const int me = static_cast<int>(threadIdx.x % 32), group = me / width * width, from = me - static_cast<int>(delta);
  return dgc::emulation::shuffle({"__shfl_up_sync", at}, mask, value, static_cast<unsigned>(from < group ? me : from));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   std::source_location at = std::source_location::current()) {
  const int me = static_cast<int>(threadIdx.x % 32), group = me / width * width, from = me + static_cast<int>(delta);
  return dgc::emulation::shuffle({"__shfl_down_sync", at}, mask, value,
                                 static_cast<unsigned>(from >= group + width ? me : from));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  std::source_location at = std::source_location::current()) {
  const int me = static_cast<int>(threadIdx.x % 32), group = me / width * width, from = me ^ lane_mask;
  return dgc::emulation::shuffle({"__shfl_xor_sync", at}, mask, value,
                                 static_cast<unsigned>(from >= group + width ? me : from));
}

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }

template <typename T>
T __ldg(const T* p) {
  return *p;
}
template <typename T>
T __ldcs(const T* p) {
  return *p;
}
template <typename T>
void __stcs(T* p, T value) {
  *p = value;
}
template <typename T>
void __stcg(T* p, T value) {
  *p = value;
}

// Between two atomics of one thread any number of another's may come; each is one step.
#define DGC_EMULATED_ATOMIC(name, T, result) \
  inline T name(T* address, T value) {       \
    ::dgc::emulation::let_others_run();      \
    const T old = *address;                  \
    *address = (result);                     \
    return old;                              \
  }
inline int atomicAdd(int* address, int value) {
  ::dgc::emulation::let_others_run();
  const int old = *address;
  *address = static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value));  // wraps, as a GPU's
  return old;
}
DGC_EMULATED_ATOMIC(atomicAdd, unsigned, old + value)
DGC_EMULATED_ATOMIC(atomicAdd, unsigned long long, old + value)
DGC_EMULATED_ATOMIC(atomicMax, int, old > value ? old : value)
DGC_EMULATED_ATOMIC(atomicMax, unsigned, old > value ? old : value)
DGC_EMULATED_ATOMIC(atomicMax, unsigned long long, old > value ? old : value)
DGC_EMULATED_ATOMIC(atomicMin, int, old < value ? old : value)
DGC_EMULATED_ATOMIC(atomicMin, unsigned, old < value ? old : value)
DGC_EMULATED_ATOMIC(atomicMin, unsigned long long, old < value ? old : value)
DGC_EMULATED_ATOMIC(atomicOr, unsigned, old | value)
DGC_EMULATED_ATOMIC(atomicExch, int, value)
DGC_EMULATED_ATOMIC(atomicExch, unsigned, value)
DGC_EMULATED_ATOMIC(atomicExch, unsigned long long, value)
#undef DGC_EMULATED_ATOMIC

namespace dgc::cuda {

inline void grid_sync(std::source_location at = std::source_location::current()) {
  emulation::wait_for_grid({"grid_sync", at});
}

inline uint64_t clock_nanoseconds() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

inline float to_float(float value) { return value; }
inline float to_float(f16 value) { return half_to_float(value.bits); }
inline float to_float(bf16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

template <typename T>
T from_float(float value);
template <>
inline float from_float<float>(float value) {
  return value;
}
template <>
inline f16 from_float<f16>(float value) {
  return {float_to_half(value)};
}
template <>
inline bf16 from_float<bf16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};  // stays a NaN
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace dgc::cuda
