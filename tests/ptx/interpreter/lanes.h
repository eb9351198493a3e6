#pragma once

#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/ptx/interpreter/machine.h"

// How a function of C++ values becomes an instruction on the lanes of a warp.
namespace dgc::ptx {

// Values of 16 bits that are no integers, as they lie in a register.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

// Registers of 8 and 16 bits take a cell of 32, of which the rest is not read; predicates are 0 or 1.
template <typename T>
T unpack(Cell<T> cell) {
  if constexpr (std::is_same_v<T, bool>) {
    return cell != 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(cell);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(cell);
  } else {
    return T{static_cast<uint16_t>(cell)};
  }
}
template <typename T>
Cell<T> pack(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? 1 : 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<Cell<T>>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<Cell<T>>(value);
  } else {
    return value.bits;
  }
}

template <typename F>
void for_lanes(Lanes lanes, const F& f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<unsigned>(std::countr_zero(lanes)));
}

// Sets the result of every lane to f(lane).
template <typename R, typename F>
void set_lanes(Warp& warp, Slot to, Lanes lanes, const F& f) {
  Cell<R>* const results = warp.lanes<R>(to);
  if (lanes == ~Lanes{0}) {
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kWarpSize; ++lane) results[lane] = pack<R>(f(lane));
  } else {
    for_lanes(lanes, [&](unsigned lane) { results[lane] = pack<R>(f(lane)); });
  }
}

// to = F(from[0], from[1], ...), of types R and A...; F is a lambda without captures.
template <typename R, typename... A, typename F>
Execute per_lane(F) {
  return [](Warp& warp, const Instruction& i, Lanes lanes) {
    [&]<size_t... N>(std::index_sequence<N...>) {
      const std::tuple sources{warp.lanes<A>(i.from[N])...};
      set_lanes<R>(warp, i.to, lanes, [&](unsigned lane) { return F{}(unpack<A>(std::get<N>(sources)[lane])...); });
    }
    (std::index_sequence_for<A...>{});
  };
}

// The same, where F also takes the instruction, of which it reads how to round and the like.
template <typename R, typename... A, typename F>
Execute per_lane_with_modes(F) {
  return [](Warp& warp, const Instruction& i, Lanes lanes) {
    [&]<size_t... N>(std::index_sequence<N...>) {
      const std::tuple sources{warp.lanes<A>(i.from[N])...};
      set_lanes<R>(warp, i.to, lanes, [&](unsigned lane) { return F{}(i, unpack<A>(std::get<N>(sources)[lane])...); });
    }
    (std::index_sequence_for<A...>{});
  };
}

// Whether PTX's type is held in C++'s T.
template <typename T>
constexpr bool holds(Type type) {
  if constexpr (std::is_same_v<T, bool>) return type == Type::pred;
  if constexpr (std::is_same_v<T, uint8_t>) return type == Type::u8 || type == Type::b8;
  if constexpr (std::is_same_v<T, uint16_t>) return type == Type::u16 || type == Type::b16;
  if constexpr (std::is_same_v<T, uint32_t>) return type == Type::u32 || type == Type::b32;
  if constexpr (std::is_same_v<T, uint64_t>) return type == Type::u64 || type == Type::b64;
  if constexpr (std::is_same_v<T, int8_t>) return type == Type::s8;
  if constexpr (std::is_same_v<T, int16_t>) return type == Type::s16;
  if constexpr (std::is_same_v<T, int32_t>) return type == Type::s32;
  if constexpr (std::is_same_v<T, int64_t>) return type == Type::s64;
  if constexpr (std::is_same_v<T, float>) return type == Type::f32;
  if constexpr (std::is_same_v<T, double>) return type == Type::f64;
  if constexpr (std::is_same_v<T, Half>) return type == Type::f16;
  if constexpr (std::is_same_v<T, BFloat>) return type == Type::bf16;
  return false;
}

template <typename... T>
struct Types {};
using IntegerTypes = Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
using UnsignedTypes = Types<uint16_t, uint32_t, uint64_t>;
using FloatTypes = Types<float, double>;
using NumberTypes = Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float, double>;

// f(T{}) for the one of the types that holds PTX's type; null where none does.
template <typename... T, typename F>
Execute for_type(Types<T...>, Type type, const F& f) {
  Execute execute = nullptr;
  (void)((holds<T>(type) && (execute = f(T{}), true)) || ...);
  return execute;
}

}  // namespace dgc::ptx
