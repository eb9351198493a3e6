// Arithmetic of floats, and conversions. What MUFU approximates is not a GPU's to the last bit: it is the correctly
// rounded result, or nearly so.
#include <cmath>

#include "tests/ptx/interpreter/float_math.h"
#include "tests/ptx/sass/comparison.h"
#include "tests/ptx/sass/decoder.h"

namespace dgc::ptx::sass {
namespace {

float flushed_if(bool flush, float value) { return flush ? flushed(value) : value; }

void take_rounding(Decoder& d) {
  const std::string_view name = d.take_one_of({"RN", "RZ", "RM", "RP"});
  Instruction& i = d.instruction();
  if (name == "RZ") i.rounding = Rounding::zero;
  if (name == "RM") i.rounding = Rounding::down;
  if (name == "RP") i.rounding = Rounding::up;
}

// Where F(a...) is the operation rounded to nearest and G(rounding, a...) the one in any mode.
template <size_t kSources, typename F, typename G>
void emit_rounded(Decoder& d, F plain, G) {
  d.instruction().flush = d.takes("FTZ");
  take_rounding(d);
  d.take(kSources == 2 ? "rff" : "rfff");
  const Instruction& modes = d.instruction();
  if (modes.rounding == Rounding::nearest && !modes.flush) {
    d.emit(each_lane<kSources>(plain));
  } else if constexpr (kSources == 2) {
    d.emit(each_lane_with_modes<2>([](const Instruction& m, float a, float b) {
      return canonical(flushed_if(m.flush, G{}(m.rounding, flushed_if(m.flush, a), flushed_if(m.flush, b))));
    }));
  } else {
    d.emit(each_lane_with_modes<3>([](const Instruction& m, float a, float b, float c) {
      return canonical(
          flushed_if(m.flush, G{}(m.rounding, flushed_if(m.flush, a), flushed_if(m.flush, b), flushed_if(m.flush, c))));
    }));
  }
}

template <Compare kHow, Combine kCombine>
Operation float_comparison() {
  return each_lane_with_modes<3>([](const Instruction& m, float a, float b, bool other) {
    return both_ways<kCombine>(compared<kHow>(flushed_if(m.flush, a), flushed_if(m.flush, b)), other);
  });
}

bool decode_fsetp(Decoder& d) {
  const Compare how = take_float_compare(d);
  d.instruction().flush = d.takes("FTZ");
  const Combine combine = take_combine(d);
  d.take("ppffq");
  d.emit(for_comparison<kFloatCompares>(
      how, combine, []<Compare kHow, Combine kCombine>() { return float_comparison<kHow, kCombine>(); }));
  return true;
}

// The lesser where the predicate is true, else the greater. NaN loses to a number, but with .NAN.
bool decode_fmnmx(Decoder& d) {
  const bool nan = d.takes("NAN");
  d.instruction().flush = d.takes("FTZ");
  d.take("rffq");
  if (nan) {
    d.emit(each_lane_with_modes<3>([](const Instruction& m, float a, float b, bool least) {
      if (a != a || b != b) return canonical(a + b);
      a = flushed_if(m.flush, a), b = flushed_if(m.flush, b);
      return least ? lesser(a, b) : greater(a, b);
    }));
  } else {
    d.emit(each_lane_with_modes<3>([](const Instruction& m, float a, float b, bool least) {
      a = flushed_if(m.flush, a), b = flushed_if(m.flush, b);
      return canonical(least ? lesser(a, b) : greater(a, b));
    }));
  }
  return true;
}

// MUFU flushes subnormal operands and results.
bool decode_mufu(Decoder& d) {
  const std::string_view function = d.take_one_of({"RCP", "RSQ"});
  d.take("rf");
  if (function == "RCP") {
    d.emit(each_lane<1>([](float a) { return canonical(flushed(1 / flushed(a))); }));
  } else if (function == "RSQ") {
    d.emit(each_lane<1>([](float a) { return canonical(static_cast<float>(1 / std::sqrt(double{flushed(a)}))); }));
  } else {
    d.fail("an approximation of an unknown function");
  }
  return true;
}

// FCHK: whether a / b is beyond what the short way of dividing can do. A GPU's bounds are not published; with closer
// ones more divisions take the long way, which is right for all.
bool decode_fchk(Decoder& d) {
  d.take("pff");
  d.emit(each_lane<2>([](float a, float b) {
    const auto exponent = [](float f) { return static_cast<int>(std::bit_cast<uint32_t>(f) >> 23 & 255); };
    const int ea = exponent(a), eb = exponent(b);
    return ea < 30 || ea > 250 || eb < 3 || eb > 250 || std::abs(ea - eb) > 120;
  }));
  return true;
}

bool decode_from_integer(Decoder& d) {
  const std::string_view type = d.take_one_of({"U64", "S64", "U32", "U16", "S8"});
  take_rounding(d);
  const bool wide = type.ends_with("64");
  d.take(wide ? "rA" : "ra");
  if (type == "U64") {
    d.emit(each_lane_with_modes<2>([](const Instruction& m, uint32_t low, uint32_t high) {
      return rounded_float(m.rounding, uint64_t{high} << 32 | low);
    }));
  } else if (type == "S64") {
    d.emit(each_lane_with_modes<2>([](const Instruction& m, uint32_t low, uint32_t high) {
      return rounded_float(m.rounding, static_cast<int64_t>(uint64_t{high} << 32 | low));
    }));
  } else if (type == "U32") {
    d.emit(each_lane_with_modes<1>(
        [](const Instruction& m, uint32_t a) { return rounded_float(m.rounding, uint64_t{a}); }));
  } else if (type == "U16") {
    d.emit(each_lane<1>([](uint32_t a) { return static_cast<float>(static_cast<uint16_t>(a)); }));
  } else if (type.empty()) {  // 32 bits with a sign
    d.emit(
        each_lane_with_modes<1>([](const Instruction& m, int32_t a) { return rounded_float(m.rounding, int64_t{a}); }));
  } else {
    d.emit(each_lane<1>([](uint32_t a) { return static_cast<float>(static_cast<int8_t>(a)); }));
  }
  return true;
}

// Of 64 bits NaN becomes 2^63, of 32 with .NTZ 0: as PTX's conversions.
template <typename T>
std::tuple<uint32_t, uint32_t> halves_of_integer(float a) {
  const auto whole = static_cast<uint64_t>(to_integer<T>(Rounding::zero, a));
  return {static_cast<uint32_t>(whole), static_cast<uint32_t>(whole >> 32)};
}

bool decode_to_integer(Decoder& d) {
  d.instruction().flush = d.takes("FTZ");
  const std::string_view wide = d.take_one_of({"U64", "S64"});
  if (wide.empty()) d.expect("U32");
  d.expect("TRUNC");
  if (wide.empty()) d.expect("NTZ");
  d.take(wide.empty() ? "rf" : "Rf");
  if (wide == "U64") {
    d.emit(each_lane_with_modes<1>(
        [](const Instruction& m, float a) { return halves_of_integer<uint64_t>(flushed_if(m.flush, a)); }));
  } else if (wide == "S64") {
    d.emit(each_lane_with_modes<1>(
        [](const Instruction& m, float a) { return halves_of_integer<int64_t>(flushed_if(m.flush, a)); }));
  } else {
    d.emit(each_lane_with_modes<1>(
        [](const Instruction& m, float a) { return to_integer<uint32_t>(Rounding::zero, flushed_if(m.flush, a)); }));
  }
  return true;
}

}  // namespace

bool decode_floats(Decoder& d) {
  if (d.is("FADD")) {
    emit_rounded<2>(
        d, [](float a, float b) { return canonical(a + b); },
        [](Rounding r, float a, float b) { return rounded_sum(r, a, b); });
  } else if (d.is("FMUL")) {
    emit_rounded<2>(
        d, [](float a, float b) { return canonical(a * b); },
        [](Rounding r, float a, float b) { return rounded_product(r, a, b); });
  } else if (d.is("FFMA")) {
    emit_rounded<3>(
        d, [](float a, float b, float c) { return canonical(std::fma(a, b, c)); },
        [](Rounding r, float a, float b, float c) { return rounded_fma(r, a, b, c); });
  } else if (d.is("FSEL")) {
    d.take("rffq");
    d.emit(each_lane<3>([](uint32_t a, uint32_t b, bool first) { return first ? a : b; }));
  } else if (d.is("FSETP")) {
    return decode_fsetp(d);
  } else if (d.is("FMNMX")) {
    return decode_fmnmx(d);
  } else if (d.is("MUFU")) {
    return decode_mufu(d);
  } else if (d.is("FCHK")) {
    return decode_fchk(d);
  } else if (d.is("I2F")) {
    return decode_from_integer(d);
  } else if (d.is("F2I")) {
    return decode_to_integer(d);
  } else {
    return false;
  }
  return true;
}

}  // namespace dgc::ptx::sass
