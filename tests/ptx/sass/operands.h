#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/ptx/interpreter/lanes.h"
#include "tests/ptx/interpreter/machine.h"

// How a function of C++ values becomes an instruction of SASS, which may have more operands than one of PTX, and signs
// on them. All registers have 32 bits: of a pair each half is an operand.
namespace dgc::ptx::sass {

// What is read is ((cell & keep) ^ flip) + add.
struct Source {
  Slot slot = kNoSlot;
  uint32_t keep = ~0u, flip = 0, add = 0;
};

struct Operands {
  std::array<Slot, 3> to{kNoSlot, kNoSlot, kNoSlot};
  std::array<Source, 9> from;
};

// A source, as whatever a function takes it for.
class Value {
 public:
  explicit Value(uint64_t bits) : bits_(bits) {}
  operator uint32_t() const { return static_cast<uint32_t>(bits_); }
  operator int32_t() const { return static_cast<int32_t>(static_cast<uint32_t>(bits_)); }
  operator uint64_t() const { return bits_; }  // of -x that is 2^32 - x, which is 2^32 of 0: so a sum has its carry
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits_)); }
  operator bool() const { return (bits_ & 1) != 0; }

 private:
  uint64_t bits_;
};

template <typename R>
void write_results(const std::array<uint32_t*, 3>& cells, unsigned lane, const R& result) {
  if constexpr (std::is_arithmetic_v<R>) {
    static_assert(sizeof(R) <= 4);
    cells[0][lane] = pack<R>(result);
  } else {
    [&]<size_t... N>(std::index_sequence<N...>) {
      ((cells[N][lane] = pack<std::tuple_element_t<N, R>>(std::get<N>(result))), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<R>>{});
  }
}

template <typename R>
constexpr size_t results_of() {
  if constexpr (std::is_arithmetic_v<R>) {
    return 1;
  } else {
    return std::tuple_size_v<R>;
  }
}

// With how many operands it is to be used.
struct Operation {
  Execute execute = nullptr;
  size_t results = 0, sources = 0;
};

namespace detail {

template <size_t>
using AnyValue = Value;

template <bool kWithModes, typename F, size_t... N>
Operation operation(F, std::index_sequence<N...>) {
  using Result = typename decltype([] {
    if constexpr (kWithModes) {
      return std::type_identity<std::invoke_result_t<F, const Instruction&, AnyValue<N>...>>{};
    } else {
      return std::type_identity<std::invoke_result_t<F, AnyValue<N>...>>{};
    }
  }())::type;
  const Execute execute = [](Warp& warp, const Instruction& i, Lanes lanes) {
    const Operands& operands = *i.operands;
    const std::array<const uint32_t*, sizeof...(N)> cells{warp.lanes<uint32_t>(operands.from[N].slot)...};
    std::array<uint32_t*, 3> results{};
    for (size_t n = 0; n < results_of<Result>(); ++n) results[n] = warp.lanes<uint32_t>(operands.to[n]);
    const auto read = [&](size_t n, unsigned lane) {
      const Source& source = operands.from[n];
      return Value(uint64_t{(cells[n][lane] & source.keep) ^ source.flip} + source.add);
    };
    const auto one = [&](unsigned lane) {
      if constexpr (kWithModes) {
        write_results(results, lane, F{}(i, read(N, lane)...));
      } else {
        write_results(results, lane, F{}(read(N, lane)...));
      }
    };
    if (lanes == ~Lanes{0}) {
      for (unsigned lane = 0; lane < kWarpSize; ++lane) one(lane);
    } else {
      for_lanes(lanes, one);
    }
  };
  return {execute, results_of<Result>(), sizeof...(N)};
}

}  // namespace detail

// For each lane: results = F(source, ...), of as many sources; F is a lambda without captures, and returns a number, a
// float, a bool or a tuple of them.
template <size_t kSources, typename F>
Operation each_lane(F f) {
  return detail::operation<false>(f, std::make_index_sequence<kSources>{});
}

// The same, where F also takes the instruction, of which it reads how to round and the like.
template <size_t kSources, typename F>
Operation each_lane_with_modes(F f) {
  return detail::operation<true>(f, std::make_index_sequence<kSources>{});
}

}  // namespace dgc::ptx::sass
