// Comparisons, choices and predicates.
#include "tests/ptx/sass/comparison.h"
#include "tests/ptx/sass/decoder.h"

namespace dgc::ptx::sass {
namespace {

// The upper halves of two numbers, of which the lower ones compare as `low` says.
template <Compare kHow, typename T>
bool compared_with_low(T a, T b, bool low) {
  if constexpr (kHow == Compare::ne) return a != b || low;
  return a == b ? low : kHow != Compare::eq && compared<kHow>(a, b);
}

template <Compare kHow, Combine kCombine, typename T>
Operation integer_comparison(bool extended) {
  if (extended) {
    return each_lane<4>(
        [](T a, T b, bool other, bool low) { return both_ways<kCombine>(compared_with_low<kHow>(a, b, low), other); });
  }
  return each_lane<3>([](T a, T b, bool other) { return both_ways<kCombine>(compared<kHow>(a, b), other); });
}

bool decode_isetp(Decoder& d) {
  const Compare how = take_integer_compare(d);
  const bool is_unsigned = d.takes("U32"), extended = d.takes("EX");
  const Combine combine = take_combine(d);
  d.take(extended ? "ppaaqq" : "ppaaq");
  d.emit(for_comparison<kIntegerCompares>(how, combine, [&]<Compare kHow, Combine kCombine>() {
    return is_unsigned ? integer_comparison<kHow, kCombine, uint32_t>(extended)
                       : integer_comparison<kHow, kCombine, int32_t>(extended);
  }));
  return true;
}

// Two functions of three predicates, each of which its table holds.
bool decode_plop3(Decoder& d) {
  d.expect("LUT");
  d.take("ppqqqaa");
  d.emit(each_lane<5>([](bool a, bool b, bool c, uint32_t first, uint32_t second) {
    const unsigned at = (a ? 4u : 0u) | (b ? 2u : 0u) | (c ? 1u : 0u);
    return std::tuple<bool, bool>{(first >> at & 1) != 0, (second >> at & 1) != 0};
  }));
  return true;
}

// P2R: the predicates that the mask names take the place of those bits of a number.
bool decode_p2r(Decoder& d) {
  d.expect("PR");
  for (unsigned n = 0; n < 7; ++n) d.add_source({.slot = d.builder().of_register({Bank::predicate, n})});
  d.take("raa");
  d.emit(each_lane<9>([](bool p0, bool p1, bool p2, bool p3, bool p4, bool p5, bool p6, uint32_t a, uint32_t mask) {
    uint32_t bits = 0, at = 0;
    for (const bool p : {p0, p1, p2, p3, p4, p5, p6}) bits |= (p ? 1u : 0u) << at++;
    return (bits & mask) | (a & ~mask);
  }));
  return true;
}

}  // namespace

bool decode_logic(Decoder& d) {
  if (d.is("ISETP")) return decode_isetp(d);
  if (d.is("PLOP3")) return decode_plop3(d);
  if (d.is("P2R")) return decode_p2r(d);
  if (!d.is("SEL")) return false;
  d.take("raaq");
  d.emit(each_lane<3>([](uint32_t a, uint32_t b, bool first) { return first ? a : b; }));
  return true;
}

}  // namespace dgc::ptx::sass
