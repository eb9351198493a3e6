#include <cmath>
#include <limits>

#include "tests/ptx/interpreter/decoder.h"
#include "tests/ptx/interpreter/float_math.h"
#include "tests/ptx/interpreter/lanes.h"

namespace dgc::ptx {
namespace {

using AllIntegers = Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;

bool is_integer(Type t) { return t >= Type::b8 && t <= Type::s64; }

template <typename To, typename From>
To clamped(From value) {
  if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (std::cmp_greater(value, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

// A source of up to 32 bits may lie in a register of 64.
Execute integer_to_integer(Decoder& d, Type to, Type from) {
  const bool saturate = d.has("sat");
  const Operand& source = d.operand(1);
  const bool wide = bits_of(from) < 64 && source.kind == Operand::Kind::reg && d.is_wide_register(source);
  if (wide && saturate) return nullptr;
  d.take(bits_of(to), {wide ? 64 : bits_of(from)});
  return for_type(AllIntegers{}, from, [&](auto f) {
    using From = decltype(f);
    return for_type(AllIntegers{}, to, [&](auto t) {
      using To = decltype(t);
      if (saturate) return per_lane<To, From>([](From a) { return clamped<To>(a); });
      if (wide) return per_lane<To, uint64_t>([](uint64_t a) { return static_cast<To>(static_cast<From>(a)); });
      return per_lane<To, From>([](From a) { return static_cast<To>(a); });
    });
  });
}

Execute float_to_integer(Type to, Type from) {
  return for_type(FloatTypes{}, from, [&](auto f) {
    using From = decltype(f);
    return for_type(AllIntegers{}, to, [&](auto t) {
      using To = decltype(t);
      return per_lane_with_modes<To, From>([](const Instruction& m, From a) {
        if constexpr (std::is_same_v<From, float>) {
          if (m.flush) a = flushed(a);
        }
        return to_integer<To>(m.rounding, a);
      });
    });
  });
}

Execute integer_to_float(Decoder& d, Type to, Type from) {
  const bool nearest = d.instruction().rounding == Rounding::nearest;
  return for_type(AllIntegers{}, from, [&](auto f) {
    using From = decltype(f);
    using Long = std::conditional_t<std::is_signed_v<From>, int64_t, uint64_t>;
    return for_type(FloatTypes{}, to, [&](auto t) {
      using To = decltype(t);
      if (nearest) return per_lane<To, From>([](From a) { return static_cast<To>(a); });
      return per_lane_with_modes<To, From>([](const Instruction& m, From a) {
        if constexpr (std::is_same_v<To, float>) {
          return rounded_float(m.rounding, Long{a});
        } else {
          return rounded_double(m.rounding, Long{a});
        }
      });
    });
  });
}

// Within f32 and f64: to another of them, or to a whole number of the same.
Execute float_to_float(Decoder& d, Type to, Type from) {
  if (to == from) {
    const bool whole = d.has("rni") || d.has("rzi") || d.has("rmi") || d.has("rpi");
    if (!whole && !d.has("sat") && !d.has("ftz")) return nullptr;
    return for_type(FloatTypes{}, to, [&](auto t) {
      using T = decltype(t);
      const auto finished = [](const Instruction& m, T a) {
        if constexpr (std::is_same_v<T, float>) {
          if (m.flush) a = flushed(a);
        }
        return canonical(m.saturate ? saturated(a) : a);
      };
      if (!whole) return per_lane_with_modes<T, T>(finished);
      return per_lane_with_modes<T, T>(
          [](const Instruction& m, T a) { return decltype(finished){}(m, integral(m.rounding, a)); });
    });
  }
  if (d.has("sat") || d.has("ftz")) return nullptr;
  if (to == Type::f64) return per_lane<double, float>([](float a) { return static_cast<double>(a); });
  return per_lane_with_modes<float, double>(
      [](const Instruction& m, double a) { return canonical(rounded_float(m.rounding, a)); });
}

Execute half_conversion(Decoder& d, Type to, Type from) {
  const size_t modifiers = d.statement().opcode.size() - 3;  // beside the two types
  if (from == Type::f16 && to == Type::f32 && modifiers == 0) {
    return per_lane<float, Half>([](Half a) { return widened(a); });
  }
  if (from == Type::bf16 && to == Type::f32 && modifiers == 0) {
    return per_lane<float, BFloat>([](BFloat a) { return widened(a); });
  }
  if (from != Type::f32 || modifiers != 1 || !d.has("rn")) return nullptr;
  if (to == Type::f16) return per_lane<Half, float>([](float a) { return narrowed_to_half(a); });
  if (to == Type::bf16) return per_lane<BFloat, float>([](float a) { return narrowed_to_bfloat(a); });
  return nullptr;
}

// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
Execute pair_conversion(Decoder& d, Type to, Type from) {
  if (from != Type::f32 || d.statement().opcode.size() != 4 || !d.has("rn")) return nullptr;
  d.take(32, {32, 32});
  if (to == Type::f16x2) {
    return per_lane<uint32_t, float, float>(
        [](float a, float b) { return uint32_t{narrowed_to_half(a).bits} << 16 | narrowed_to_half(b).bits; });
  }
  return per_lane<uint32_t, float, float>(
      [](float a, float b) { return uint32_t{narrowed_to_bfloat(a).bits} << 16 | narrowed_to_bfloat(b).bits; });
}

}  // namespace

Execute decode_conversions(Decoder& d) {
  if (!d.is("cvt")) return nullptr;
  const Type from = d.type(0), to = d.type(1);
  if (to == Type::f16x2 || to == Type::bf16x2) return pair_conversion(d, to, from);
  if (is_integer(from) && is_integer(to)) return integer_to_integer(d, to, from);
  d.take(bits_of(to), {bits_of(from)});
  d.take_modes();
  if (bits_of(to) == 16 && !is_integer(to)) return half_conversion(d, to, from);
  if (bits_of(from) == 16 && !is_integer(from)) return half_conversion(d, to, from);
  if (is_integer(to)) return float_to_integer(to, from);
  if (is_integer(from)) return integer_to_float(d, to, from);
  return float_to_float(d, to, from);
}

}  // namespace dgc::ptx
