#pragma once

#include <algorithm>
#include <initializer_list>
#include <tuple>

#include "tests/ptx/sass/decoder.h"

// What ISETP and FSETP have in common.
namespace dgc::ptx::sass {

// Those that end in u are also true where one of the numbers is NaN.
enum class Compare : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
inline constexpr size_t kIntegerCompares = 6, kFloatCompares = 14;
// How a comparison is combined with another predicate.
enum class Combine : uint8_t { with_and, with_or, with_xor };

template <Compare kHow, typename T>
bool compared(T a, T b) {
  if constexpr (kHow == Compare::eq) return a == b;
  if constexpr (kHow == Compare::ne) return a < b || a > b;
  if constexpr (kHow == Compare::lt) return a < b;
  if constexpr (kHow == Compare::le) return a <= b;
  if constexpr (kHow == Compare::gt) return a > b;
  if constexpr (kHow == Compare::ge) return a >= b;
  if constexpr (kHow == Compare::equ) return !(a < b || a > b);
  if constexpr (kHow == Compare::neu) return !(a == b);
  if constexpr (kHow == Compare::ltu) return !(a >= b);
  if constexpr (kHow == Compare::leu) return !(a > b);
  if constexpr (kHow == Compare::gtu) return !(a <= b);
  if constexpr (kHow == Compare::geu) return !(a < b);
  if constexpr (kHow == Compare::num) return a == a && b == b;
  if constexpr (kHow == Compare::nan) return a != a || b != b;
}

template <Combine kCombine>
bool combined(bool a, bool b) {
  if constexpr (kCombine == Combine::with_and) return a && b;
  if constexpr (kCombine == Combine::with_or) return a || b;
  if constexpr (kCombine == Combine::with_xor) return a != b;
}

// The two predicates that are written: of the comparison, and of its contrary.
template <Combine kCombine>
std::tuple<bool, bool> both_ways(bool result, bool other) {
  return {combined<kCombine>(result, other), combined<kCombine>(!result, other)};
}

inline Compare take_compare(Decoder& d, std::initializer_list<std::string_view> names) {
  const std::string_view name = d.take_one_of(names);
  if (name.empty()) d.fail("a comparison of an unknown kind");
  return static_cast<Compare>(std::find(names.begin(), names.end(), name) - names.begin());
}
inline Compare take_integer_compare(Decoder& d) { return take_compare(d, {"EQ", "NE", "LT", "LE", "GT", "GE"}); }
inline Compare take_float_compare(Decoder& d) {
  return take_compare(d, {"EQ", "NE", "LT", "LE", "GT", "GE", "EQU", "NEU", "LTU", "LEU", "GTU", "GEU", "NUM", "NAN"});
}

inline Combine take_combine(Decoder& d) {
  if (d.takes("AND")) return Combine::with_and;
  if (d.takes("OR")) return Combine::with_or;
  d.expect("XOR");
  return Combine::with_xor;
}

// make<how, combine>(), of the first so many comparisons.
template <size_t kCompares, typename F>
Operation for_comparison(Compare how, Combine combine, const F& make) {
  Operation operation;
  [&]<size_t... N>(std::index_sequence<N...>) {
    const auto of_combine = [&]<Combine kCombine>() {
      (void)((how == static_cast<Compare>(N) &&
              (operation = make.template operator()<static_cast<Compare>(N), kCombine>(), true)) ||
             ...);
    };
    if (combine == Combine::with_and) of_combine.template operator()<Combine::with_and>();
    if (combine == Combine::with_or) of_combine.template operator()<Combine::with_or>();
    if (combine == Combine::with_xor) of_combine.template operator()<Combine::with_xor>();
  }
  (std::make_index_sequence<kCompares>{});
  return operation;
}

}  // namespace dgc::ptx::sass
