// Arithmetic of integers, shifts and bits.
#include <algorithm>
#include <bit>

#include "tests/ptx/interpreter/bit_logic.h"
#include "tests/ptx/sass/decoder.h"

namespace dgc::ptx::sass {
namespace {

__extension__ using Sum = unsigned __int128;

constexpr uint32_t low_word(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t high_word(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
constexpr uint64_t pair_of(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

// A sum and its carry, which of three numbers may be 2: so there are two predicates.
std::tuple<uint32_t, bool, bool> sum_and_carries(uint64_t sum) {
  return {low_word(sum), high_word(sum) >= 1, high_word(sum) >= 2};
}

bool decode_iadd3(Decoder& d) {
  const bool extended = d.takes("X");
  d.take(extended ? "rooaaaqq" : "rooaaa");
  if (extended) {
    d.emit(each_lane<5>([](uint64_t a, uint64_t b, uint64_t c, bool first, bool second) {
      return sum_and_carries(a + b + c + (first ? 1 : 0) + (second ? 1 : 0));
    }));
  } else {
    d.emit(each_lane<3>([](uint64_t a, uint64_t b, uint64_t c) { return sum_and_carries(a + b + c); }));
  }
  return true;
}

// The sum of a product of 64 bits, another number of 64 bits and a carry; with the new carry.
std::pair<uint64_t, bool> product_sum(uint64_t product, uint32_t low, uint32_t high, bool carry) {
  const Sum sum = Sum{product} + pair_of(low, high) + (carry ? 1 : 0);
  return {static_cast<uint64_t>(sum), (sum >> 64) != 0};
}
uint64_t signed_product(int32_t a, int32_t b) { return static_cast<uint64_t>(int64_t{a} * int64_t{b}); }
uint64_t unsigned_product(uint32_t a, uint32_t b) { return uint64_t{a} * b; }

std::tuple<uint32_t, uint32_t, bool> words_of(const std::pair<uint64_t, bool>& sum) {
  return {low_word(sum.first), high_word(sum.first), sum.second};
}
std::tuple<uint32_t, bool> upper_of(const std::pair<uint64_t, bool>& sum) { return {high_word(sum.first), sum.second}; }

bool decode_wide_product(Decoder& d) {
  const bool is_unsigned = d.takes("U32"), extended = d.takes("X");
  if (extended && !is_unsigned) d.fail("a product with a carry and signs is not known");
  d.take(extended ? "RoaaAq" : "RoaaA");
  if (extended) {
    d.emit(each_lane<5>([](uint32_t a, uint32_t b, uint32_t low, uint32_t high, bool carry) {
      return words_of(product_sum(unsigned_product(a, b), low, high, carry));
    }));
  } else if (is_unsigned) {
    d.emit(each_lane<4>([](uint32_t a, uint32_t b, uint32_t low, uint32_t high) {
      return words_of(product_sum(unsigned_product(a, b), low, high, false));
    }));
  } else {
    d.emit(each_lane<4>([](int32_t a, int32_t b, uint32_t low, uint32_t high) {
      return words_of(product_sum(signed_product(a, b), low, high, false));
    }));
  }
  return true;
}

bool decode_upper_product(Decoder& d) {
  const bool is_unsigned = d.takes("U32");
  d.take("roaaA");
  if (is_unsigned) {
    d.emit(each_lane<4>([](uint32_t a, uint32_t b, uint32_t low, uint32_t high) {
      return upper_of(product_sum(unsigned_product(a, b), low, high, false));
    }));
  } else {
    d.emit(each_lane<4>([](int32_t a, int32_t b, uint32_t low, uint32_t high) {
      return upper_of(product_sum(signed_product(a, b), low, high, false));
    }));
  }
  return true;
}

// IMAD.MOV, .IADD and .SHL are products too: nvdisasm names what they are used for.
bool decode_imad(Decoder& d) {
  if (d.takes("WIDE")) return decode_wide_product(d);
  if (d.takes("HI")) return decode_upper_product(d);
  d.take_one_of({"MOV", "IADD", "SHL"});
  d.takes("U32");  // of the lower half the signs do not matter
  const bool extended = d.takes("X");
  d.take(extended ? "raaaq" : "raaa");
  if (extended) {
    d.emit(each_lane<4>([](uint32_t a, uint32_t b, uint32_t c, bool carry) { return a * b + c + (carry ? 1u : 0u); }));
  } else {
    d.emit(each_lane<3>([](uint32_t a, uint32_t b, uint32_t c) { return a * b + c; }));
  }
  return true;
}

// What of (a << shift) + b has 32 bits, with the carry. A minus is that of the shifted number.
bool decode_lea_low(Decoder& d) {
  const bool minus = d.operand(d.operands() - 3).negated;
  d.take("roaaa");
  if (minus) {
    d.emit(each_lane<3>([](uint32_t minus_a, uint64_t b, uint32_t shift) {
      const uint32_t shifted = (0u - minus_a) << (shift & 31);
      const uint64_t sum = uint64_t{~shifted} + 1 + b;
      return std::tuple<uint32_t, bool>{low_word(sum), high_word(sum) != 0};
    }));
  } else {
    d.emit(each_lane<3>([](uint32_t a, uint64_t b, uint32_t shift) {
      const uint64_t sum = uint64_t{a << (shift & 31)} + b;
      return std::tuple<uint32_t, bool>{low_word(sum), high_word(sum) != 0};
    }));
  }
  return true;
}

// The upper half of (high:low << shift), and b.
std::tuple<uint32_t, bool> shifted_sum(uint32_t low, uint32_t high, uint32_t shift, uint64_t b, bool carry) {
  const uint64_t sum = uint64_t{high_word(pair_of(low, high) << (shift & 31))} + b + (carry ? 1 : 0);
  return {low_word(sum), high_word(sum) != 0};
}

bool decode_lea(Decoder& d) {
  if (!d.takes("HI")) return decode_lea_low(d);
  const bool extended = d.takes("X"), sign = d.takes("SX32");
  if (sign && !extended) d.fail("this without .X is not known");
  if (sign) {
    d.take("roaaaq");
    d.emit(each_lane<4>([](uint32_t a, uint64_t b, uint32_t shift, bool carry) {
      return shifted_sum(a, (a >> 31) != 0 ? ~0u : 0u, shift, b, carry);
    }));
  } else if (extended) {
    d.take("roaaaaq");
    d.emit(each_lane<5>([](uint32_t a, uint64_t b, uint32_t high, uint32_t shift, bool carry) {
      return shifted_sum(a, high, shift, b, carry);
    }));
  } else {
    d.take("roaaaa");
    d.emit(each_lane<4>(
        [](uint32_t a, uint64_t b, uint32_t high, uint32_t shift) { return shifted_sum(a, high, shift, b, false); }));
  }
  return true;
}

// Half of high:low, shifted. By how many is clamped to the width, or with .W what its lowest bits say.
template <bool kLeft, bool kSigned, bool kWide, bool kWrap, bool kUpper>
uint32_t funnel(uint32_t low, uint32_t shift, uint32_t high) {
  constexpr uint32_t kWidth = kWide ? 64 : 32;
  const uint32_t by = kWrap ? shift & (kWidth - 1) : std::min(shift, kWidth);
  const uint64_t whole = pair_of(low, high);
  uint64_t result = 0;
  if constexpr (kLeft) {
    result = by == 64 ? 0 : whole << by;
  } else if constexpr (kSigned) {
    result = static_cast<uint64_t>(static_cast<int64_t>(whole) >> std::min(by, 63u));
  } else {
    result = by == 64 ? 0 : whole >> by;
  }
  return kUpper ? high_word(result) : low_word(result);
}

template <bool... kModes>
Operation funnel_of() {
  return each_lane<3>([](uint32_t low, uint32_t shift, uint32_t high) { return funnel<kModes...>(low, shift, high); });
}
template <bool... kModes, typename... Modes>
Operation funnel_of(bool mode, Modes... modes) {
  return mode ? funnel_of<kModes..., true>(modes...) : funnel_of<kModes..., false>(modes...);
}

bool decode_shift(Decoder& d) {
  const bool left = d.takes("L");
  if (!left) d.expect("R");
  const bool wrap = d.takes("W");
  const std::string_view type = d.take_one_of({"U32", "S32", "U64", "S64"});
  if (type.empty()) d.fail("a shift of an unknown type");
  const bool upper = d.takes("HI");
  d.take("raaa");
  d.emit(funnel_of(left, type[0] == 'S', type.substr(1) == "64", wrap, upper));
  return true;
}

uint32_t reversed(uint32_t a) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 32; ++i) result |= (a >> i & 1) << (31 - i);
  return result;
}

// The position of the highest bit, or how far it must be shifted to the top; all ones where there is none.
bool decode_flo(Decoder& d) {
  d.expect("U32");
  const bool shift = d.takes("SH");
  d.take("ra");
  if (shift) {
    d.emit(each_lane<1>([](uint32_t a) { return a == 0 ? ~0u : static_cast<uint32_t>(std::countl_zero(a)); }));
  } else {
    d.emit(each_lane<1>([](uint32_t a) { return a == 0 ? ~0u : 31u - static_cast<uint32_t>(std::countl_zero(a)); }));
  }
  return true;
}

// The lesser of two where the predicate is true, else the greater.
template <typename T>
T chosen_extreme(T a, T b, bool least) {
  return least ? std::min(a, b) : std::max(a, b);
}

bool decode_extreme(Decoder& d) {
  const bool is_unsigned = d.takes("U32");
  d.take("raaq");
  if (is_unsigned) {
    d.emit(each_lane<3>([](uint32_t a, uint32_t b, bool least) { return chosen_extreme(a, b, least); }));
  } else {
    d.emit(each_lane<3>([](int32_t a, int32_t b, bool least) { return chosen_extreme(a, b, least); }));
  }
  return true;
}

bool decode_extreme_of_sum(Decoder& d) {
  const bool is_unsigned = d.takes("U32");
  d.take("raaaq");
  if (is_unsigned) {
    d.emit(
        each_lane<4>([](uint32_t a, uint32_t b, uint32_t c, bool least) { return chosen_extreme(a + b, c, least); }));
  } else {
    d.emit(each_lane<4>([](uint32_t a, uint32_t b, int32_t c, bool least) {
      return chosen_extreme(static_cast<int32_t>(a + b), c, least);
    }));
  }
  return true;
}

}  // namespace

bool decode_integers(Decoder& d) {
  if (d.is("IADD3")) return decode_iadd3(d);
  if (d.is("IMAD")) return decode_imad(d);
  if (d.is("LEA")) return decode_lea(d);
  if (d.is("SHF")) return decode_shift(d);
  if (d.is("FLO")) return decode_flo(d);
  if (d.is("VIMNMX")) return decode_extreme(d);
  if (d.is("VIADDMNMX")) return decode_extreme_of_sum(d);
  if (d.is("VIADD")) {
    d.take("raa");
    d.emit(each_lane<2>([](uint32_t a, uint32_t b) { return a + b; }));
  } else if (d.is("LOP3")) {
    d.expect("LUT");
    d.take("oraaaaq");
    d.emit(each_lane<5>(
        // Also whether a bit of the result is set, or p.
        [](uint32_t a, uint32_t b, uint32_t c, uint32_t table, bool p) {
          const uint32_t result = looked_up(a, b, c, table);
          return std::tuple(p || result != 0, result);
        }));
  } else if (d.is("PRMT")) {
    d.take("raaa");
    d.emit(each_lane<3>([](uint32_t a, uint32_t selector, uint32_t b) { return permuted(a, b, selector); }));
  } else if (d.is("POPC")) {
    d.take("ra");
    d.emit(each_lane<1>([](uint32_t a) { return static_cast<uint32_t>(std::popcount(a)); }));
  } else if (d.is("IABS")) {
    d.take("ra");
    d.emit(each_lane<1>([](uint32_t a) { return a >> 31 != 0 ? 0 - a : a; }));
  } else if (d.is("BREV")) {
    d.take("ra");
    d.emit(each_lane<1>([](uint32_t a) { return reversed(a); }));
  } else {
    return false;
  }
  return true;
}

}  // namespace dgc::ptx::sass
