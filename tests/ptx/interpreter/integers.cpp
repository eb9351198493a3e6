#include <algorithm>
#include <bit>
#include <type_traits>

#include "tests/ptx/interpreter/bit_logic.h"
#include "tests/ptx/interpreter/decoder.h"
#include "tests/ptx/interpreter/lanes.h"

namespace dgc::ptx {
namespace {

__extension__ using WideSigned = __int128;
__extension__ using WideUnsigned = unsigned __int128;
template <typename T>
using Wide = std::conditional_t<std::is_signed_v<T>, WideSigned, WideUnsigned>;

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

// The upper half of a product.
template <typename T>
T upper_product(T a, T b) {
  return static_cast<T>(Wide<T>{a} * Wide<T>{b} >> 8 * sizeof(T));
}

// Arithmetic wraps, in a type that is too wide for C++ to call its overflow undefined.
template <typename T>
T wrapped(uint64_t value) {
  return static_cast<T>(static_cast<Unsigned<T>>(value));
}
template <typename T>
uint64_t extended(T value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

template <typename T>
Execute arithmetic(const Decoder& d) {
  if (d.is("add")) return per_lane<T, T, T>([](T a, T b) { return wrapped<T>(extended(a) + extended(b)); });
  if (d.is("sub")) return per_lane<T, T, T>([](T a, T b) { return wrapped<T>(extended(a) - extended(b)); });
  if (d.is("mul") && d.has("lo")) {
    return per_lane<T, T, T>([](T a, T b) { return wrapped<T>(extended(a) * extended(b)); });
  }
  if (d.is("mul") && d.has("hi")) {
    return per_lane<T, T, T>([](T a, T b) { return upper_product(a, b); });
  }
  if (d.is("mad") && d.has("lo")) {
    return per_lane<T, T, T, T>([](T a, T b, T c) { return wrapped<T>(extended(a) * extended(b) + extended(c)); });
  }
  if (d.is("mad") && d.has("hi")) {
    return per_lane<T, T, T, T>([](T a, T b, T c) { return wrapped<T>(extended(upper_product(a, b)) + extended(c)); });
  }
  // Division by zero is undefined in PTX; a GPU gives all ones, and a remainder of a.
  if (d.is("div")) {
    return per_lane<T, T, T>([](T a, T b) {
      if (b == 0) return static_cast<T>(-1);
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrapped<T>(~extended(a) + 1);
      return static_cast<T>(a / b);
    });
  }
  if (d.is("rem")) {
    return per_lane<T, T, T>([](T a, T b) {
      if (b == 0) return a;
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
      return static_cast<T>(a % b);
    });
  }
  if (d.is("min")) return per_lane<T, T, T>([](T a, T b) { return a < b ? a : b; });
  if (d.is("max")) return per_lane<T, T, T>([](T a, T b) { return a < b ? b : a; });
  if (d.is("neg")) return per_lane<T, T>([](T a) { return wrapped<T>(~extended(a) + 1); });
  if (d.is("abs")) return per_lane<T, T>([](T a) { return a < 0 ? wrapped<T>(~extended(a) + 1) : a; });
  return nullptr;
}

Execute decode_arithmetic(Decoder& d) {
  const bool one = d.is("neg") || d.is("abs"), three = d.is("mad");
  const unsigned bits = bits_of(d.type());
  if (one) {
    d.take(bits, {bits});
  } else if (three) {
    d.take(bits, {bits, bits, bits});
  } else {
    d.take(bits, {bits, bits});
  }
  return for_type(IntegerTypes{}, d.type(), [&](auto t) { return arithmetic<decltype(t)>(d); });
}

// mul.wide and mad.wide: the product has twice the bits of the factors.
template <typename Product, typename T>
Execute widening(Decoder& d) {
  constexpr unsigned kBits = 8 * sizeof(T);
  if (d.is("mul")) {
    d.take(2 * kBits, {kBits, kBits});
    return per_lane<Product, T, T>([](T a, T b) { return static_cast<Product>(Product{a} * Product{b}); });
  }
  d.take(2 * kBits, {kBits, kBits, 2 * kBits});
  return per_lane<Product, T, T, Product>([](T a, T b, Product c) {
    return wrapped<Product>(extended(static_cast<Product>(Product{a} * Product{b})) + extended(c));
  });
}

Execute decode_widening(Decoder& d) {
  switch (d.type()) {
    case Type::u16:
      return widening<uint32_t, uint16_t>(d);
    case Type::s16:
      return widening<int32_t, int16_t>(d);
    case Type::u32:
      return widening<uint64_t, uint32_t>(d);
    case Type::s32:
      return widening<int64_t, int32_t>(d);
    default:
      return nullptr;
  }
}

// Shifts by more than the width are clamped to it.
Execute decode_shift(Decoder& d) {
  const unsigned bits = bits_of(d.type());
  d.take(bits, {bits, 32});
  const bool left = d.is("shl");
  return for_type(IntegerTypes{}, d.type(), [&](auto t) -> Execute {
    using T = decltype(t);
    constexpr uint32_t kBits = 8 * sizeof(T);
    if (left) {
      return per_lane<T, T, uint32_t>([](T a, uint32_t n) { return n >= kBits ? T{0} : wrapped<T>(extended(a) << n); });
    }
    return per_lane<T, T, uint32_t>([](T a, uint32_t n) {
      if (n >= kBits) return a < 0 ? static_cast<T>(-1) : T{0};
      return static_cast<T>(a >> n);
    });
  });
}

// shf: a 32-bit window of the 64 bits b:a.
Execute decode_funnel_shift(Decoder& d) {
  d.take(32, {32, 32, 32});
  const bool wrap = d.has("wrap");
  if (!wrap && !d.has("clamp")) return nullptr;
  if (d.has("l")) {
    if (wrap) {
      return per_lane<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t n) {
        return static_cast<uint32_t>(((uint64_t{b} << 32 | a) << (n & 31)) >> 32);
      });
    }
    return per_lane<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t n) {
      return n >= 32 ? a : static_cast<uint32_t>(((uint64_t{b} << 32 | a) << n) >> 32);
    });
  }
  if (!d.has("r")) return nullptr;
  if (wrap) {
    return per_lane<uint32_t, uint32_t, uint32_t, uint32_t>(
        [](uint32_t a, uint32_t b, uint32_t n) { return static_cast<uint32_t>((uint64_t{b} << 32 | a) >> (n & 31)); });
  }
  return per_lane<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t n) {
    return n >= 32 ? b : static_cast<uint32_t>((uint64_t{b} << 32 | a) >> n);
  });
}

template <typename T>
T reversed(T a) {
  T result = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) result |= (a >> i & 1) << (8 * sizeof(T) - 1 - i);
  return result;
}

Execute decode_bit_count(Decoder& d) {
  const unsigned bits = bits_of(d.type());
  d.take(d.is("brev") ? bits : 32, {bits});
  return for_type(Types<uint32_t, uint64_t>{}, d.type(), [&](auto t) -> Execute {
    using T = decltype(t);
    if (d.is("popc")) return per_lane<uint32_t, T>([](T a) { return static_cast<uint32_t>(std::popcount(a)); });
    if (d.is("clz")) return per_lane<uint32_t, T>([](T a) { return static_cast<uint32_t>(std::countl_zero(a)); });
    return per_lane<T, T>([](T a) { return reversed(a); });
  });
}

// How many of the highest bits are the sign's.
template <typename T>
uint32_t leading(T a) {
  return static_cast<uint32_t>(std::countl_zero(static_cast<Unsigned<T>>(a < 0 ? ~a : a)));
}

// The position of the highest bit that differs from the sign, or how far it must be shifted to the top.
Execute decode_bfind(Decoder& d) {
  d.take(32, {bits_of(d.type())});
  const bool shift = d.has("shiftamt");
  return for_type(IntegerTypes{}, d.type(), [&](auto t) -> Execute {
    using T = decltype(t);
    if constexpr (sizeof(T) < 4) {
      return nullptr;
    } else {
      constexpr uint32_t kTop = 8 * sizeof(T) - 1;
      if (shift) {
        return per_lane<uint32_t, T>([](T a) { return leading(a) > kTop ? ~0u : leading(a); });
      }
      return per_lane<uint32_t, T>([](T a) { return leading(a) > kTop ? ~0u : kTop - leading(a); });
    }
  });
}

template <typename T>
T mask_of(uint32_t length) {
  return length >= 8 * sizeof(T) ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
}

// Of a field that reaches beyond the top, or of a length of more than the width, the rest is the sign, or zero.
template <typename T>
T extracted(T a, uint32_t position, uint32_t length) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  position &= 255;
  length &= 255;
  if (length == 0) return 0;
  const auto bits = static_cast<Unsigned<T>>(a);
  const uint32_t present = std::min(length, kBits - std::min(position, kBits));
  const Unsigned<T> mask = mask_of<Unsigned<T>>(present);
  const auto field = present == 0 ? Unsigned<T>{0} : static_cast<Unsigned<T>>(bits >> position & mask);
  const bool sign = std::is_signed_v<T> && (bits >> std::min(position + length - 1, kBits - 1) & 1) != 0;
  return static_cast<T>(sign ? field | static_cast<Unsigned<T>>(~mask) : field);
}

Execute decode_bit_field(Decoder& d) {
  const unsigned bits = bits_of(d.type());
  if (d.is("bfe")) {
    d.take(bits, {bits, 32, 32});
    return for_type(Types<uint32_t, int32_t, uint64_t, int64_t>{}, d.type(), [](auto t) {
      using T = decltype(t);
      return per_lane<T, T, uint32_t, uint32_t>([](T a, uint32_t at, uint32_t n) { return extracted(a, at, n); });
    });
  }
  d.take(bits, {bits, bits, 32, 32});
  return for_type(Types<uint32_t, uint64_t>{}, d.type(), [](auto t) {
    using T = decltype(t);
    return per_lane<T, T, T, uint32_t, uint32_t>([](T a, T b, uint32_t position, uint32_t length) {
      position &= 255;
      length &= 255;
      if (position >= 8 * sizeof(T)) return b;
      const T field = static_cast<T>(mask_of<T>(length) << position);
      return static_cast<T>((b & ~field) | (static_cast<T>(a << position) & field));
    });
  });
}

}  // namespace

Execute decode_integers(Decoder& d) {
  for (const char* modifier : {"sat", "cc", "ftz"}) {
    if (d.has(modifier)) return nullptr;
  }
  if ((d.is("mul") || d.is("mad")) && d.has("wide")) return decode_widening(d);
  if (d.is("shl") || d.is("shr")) return decode_shift(d);
  if (d.is("shf")) return decode_funnel_shift(d);
  if (d.is("popc") || d.is("clz") || d.is("brev")) return decode_bit_count(d);
  if (d.is("bfind")) return decode_bfind(d);
  if (d.is("bfe") || d.is("bfi")) return decode_bit_field(d);
  if (d.is("prmt") && d.statement().opcode.size() == 2) {
    d.take(32, {32, 32, 32});
    return per_lane<uint32_t, uint32_t, uint32_t, uint32_t>(
        [](uint32_t a, uint32_t b, uint32_t selector) { return permuted(a, b, selector); });
  }
  if (d.is("lop3")) {
    d.take(32, {32, 32, 32, 32});
    return per_lane<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>(
        [](uint32_t a, uint32_t b, uint32_t c, uint32_t table) { return looked_up(a, b, c, table); });
  }
  for (const char* opcode : {"add", "sub", "mul", "mad", "div", "rem", "min", "max", "neg", "abs"}) {
    const Type t = d.type();
    if (d.is(opcode) && t >= Type::u8 && t <= Type::s64) return decode_arithmetic(d);
  }
  return nullptr;
}

}  // namespace dgc::ptx
