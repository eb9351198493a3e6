#include <bit>

#include "tests/ptx/interpreter/decoder.h"
#include "tests/ptx/interpreter/lanes.h"

namespace dgc::ptx {
namespace {

// Comparisons of numbers; those that end in u are also true where one of them is NaN.
template <typename T>
Execute comparison(std::string_view how) {
  if (how == "eq") return per_lane<bool, T, T>([](T a, T b) { return a == b; });
  if (how == "ne") return per_lane<bool, T, T>([](T a, T b) { return a < b || a > b; });
  if (how == "lt" || how == "lo") return per_lane<bool, T, T>([](T a, T b) { return a < b; });
  if (how == "le" || how == "ls") return per_lane<bool, T, T>([](T a, T b) { return a <= b; });
  if (how == "gt" || how == "hi") return per_lane<bool, T, T>([](T a, T b) { return a > b; });
  if (how == "ge" || how == "hs") return per_lane<bool, T, T>([](T a, T b) { return a >= b; });
  if constexpr (std::is_floating_point_v<T>) {
    if (how == "equ") return per_lane<bool, T, T>([](T a, T b) { return !(a < b || a > b); });
    if (how == "neu") return per_lane<bool, T, T>([](T a, T b) { return !(a == b); });
    if (how == "ltu") return per_lane<bool, T, T>([](T a, T b) { return !(a >= b); });
    if (how == "leu") return per_lane<bool, T, T>([](T a, T b) { return !(a > b); });
    if (how == "gtu") return per_lane<bool, T, T>([](T a, T b) { return !(a <= b); });
    if (how == "geu") return per_lane<bool, T, T>([](T a, T b) { return !(a < b); });
    if (how == "num") return per_lane<bool, T, T>([](T a, T b) { return a == a && b == b; });
    if (how == "nan") return per_lane<bool, T, T>([](T a, T b) { return a != a || b != b; });
  }
  return nullptr;
}

Execute decode_setp(Decoder& d) {
  const Operand& to = d.operand(0);
  if (d.statement().opcode.size() != 3 || to.kind == Operand::Kind::group) return nullptr;
  const unsigned bits = bits_of(d.type());
  d.take(1, {bits, bits});
  return for_type(NumberTypes{}, d.type(), [&](auto t) { return comparison<decltype(t)>(d.statement().opcode[1]); });
}

Execute decode_selp(Decoder& d) {
  const unsigned bits = bits_of(d.type());
  d.take(bits, {bits, bits, 1});
  if (bits == 64) {
    return per_lane<uint64_t, uint64_t, uint64_t, bool>([](uint64_t a, uint64_t b, bool c) { return c ? a : b; });
  }
  return per_lane<uint32_t, uint32_t, uint32_t, bool>([](uint32_t a, uint32_t b, bool c) { return c ? a : b; });
}

template <typename T>
Execute bitwise(const Decoder& d) {
  if (d.is("and")) return per_lane<T, T, T>([](T a, T b) { return static_cast<T>(a & b); });
  if (d.is("or")) return per_lane<T, T, T>([](T a, T b) { return static_cast<T>(a | b); });
  if (d.is("xor")) return per_lane<T, T, T>([](T a, T b) { return static_cast<T>(a ^ b); });
  return nullptr;
}

Execute decode_not(Decoder& d) {
  const unsigned bits = bits_of(d.type());
  d.take(bits, {bits});
  if (d.type() == Type::pred) return per_lane<bool, bool>([](bool a) { return !a; });
  return for_type(UnsignedTypes{}, d.type(), [](auto t) {
    using T = decltype(t);
    return per_lane<T, T>([](T a) { return static_cast<T>(~a); });
  });
}

}  // namespace

Execute decode_logic(Decoder& d) {
  if (d.is("setp")) return decode_setp(d);
  if (d.is("selp")) return decode_selp(d);
  if (d.is("not")) return decode_not(d);
  if (!d.is("and") && !d.is("or") && !d.is("xor")) return nullptr;
  const unsigned bits = bits_of(d.type());
  d.take(bits, {bits, bits});
  if (d.type() == Type::pred) {
    if (d.is("and")) return per_lane<bool, bool, bool>([](bool a, bool b) { return a && b; });
    if (d.is("or")) return per_lane<bool, bool, bool>([](bool a, bool b) { return a || b; });
    return per_lane<bool, bool, bool>([](bool a, bool b) { return a != b; });
  }
  return for_type(UnsignedTypes{}, d.type(), [&](auto t) { return bitwise<decltype(t)>(d); });
}

}  // namespace dgc::ptx
