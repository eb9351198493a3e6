// Arithmetic of floats. Approximations (ex2.approx, rcp.approx and the like) are not a GPU's to the last bit: they are
// the correctly rounded results, or nearly so, and a test that compares such results needs a tolerance.
#include <cmath>
#include <limits>

#include "tests/ptx/interpreter/decoder.h"
#include "tests/ptx/interpreter/float_math.h"
#include "tests/ptx/interpreter/lanes.h"

namespace dgc::ptx {
namespace {

template <typename T>
T flushed_if(bool flush, T value) {
  if constexpr (std::is_same_v<T, float>) {
    return flush ? flushed(value) : value;
  } else {
    return value;
  }
}

// Where F(a...) is the operation rounded to nearest and G(rounding, a...) the one in any mode.
template <typename T, typename... A, typename F, typename G>
Execute rounded_or_plain(const Instruction& i, F f, G) {
  if (i.rounding == Rounding::nearest && !i.flush && !i.saturate) return per_lane<T, A...>(f);
  return per_lane_with_modes<T, A...>([](const Instruction& modes, A... a) {
    T result = flushed_if(modes.flush, G{}(modes.rounding, flushed_if(modes.flush, a)...));
    if (modes.saturate) result = saturated(result);
    return canonical(result);
  });
}

template <typename T>
Execute exact(const Decoder& d, const Instruction& i) {
  if (d.is("add")) {
    return rounded_or_plain<T, T, T>(
        i, [](T a, T b) { return canonical(a + b); }, [](Rounding r, T a, T b) { return rounded_sum(r, a, b); });
  }
  if (d.is("sub")) {
    return rounded_or_plain<T, T, T>(
        i, [](T a, T b) { return canonical(a - b); }, [](Rounding r, T a, T b) { return rounded_sum(r, a, -b); });
  }
  if (d.is("mul")) {
    return rounded_or_plain<T, T, T>(
        i, [](T a, T b) { return canonical(a * b); }, [](Rounding r, T a, T b) { return rounded_product(r, a, b); });
  }
  if (d.is("fma")) {
    return rounded_or_plain<T, T, T, T>(
        i, [](T a, T b, T c) { return canonical(std::fma(a, b, c)); },
        [](Rounding r, T a, T b, T c) { return rounded_fma(r, a, b, c); });
  }
  if (d.is("div")) {
    return rounded_or_plain<T, T, T>(
        i, [](T a, T b) { return canonical(a / b); }, [](Rounding r, T a, T b) { return rounded_quotient(r, a, b); });
  }
  if (d.is("rcp")) {
    return rounded_or_plain<T, T>(
        i, [](T a) { return canonical(T{1} / a); }, [](Rounding r, T a) { return rounded_quotient(r, T{1}, a); });
  }
  if (d.is("sqrt")) {
    return rounded_or_plain<T, T>(
        i, [](T a) { return canonical(std::sqrt(a)); }, [](Rounding r, T a) { return rounded_root(r, a); });
  }
  return nullptr;
}

// Without a rounding: min, max, abs, neg, copysign.
template <typename T>
Execute unrounded(const Decoder& d, const Instruction& i) {
  if (i.saturate) return nullptr;
  if (d.is("min") || d.is("max")) {
    const bool nan = d.has("NaN"), least = d.is("min");
    if (d.has("xorsign") || d.operands() != 3) return nullptr;
    if (nan && least) {
      return per_lane_with_modes<T, T, T>([](const Instruction& m, T a, T b) {
        return a != a || b != b ? canonical(std::numeric_limits<T>::quiet_NaN())
                                : lesser(flushed_if(m.flush, a), flushed_if(m.flush, b));
      });
    }
    if (nan) {
      return per_lane_with_modes<T, T, T>([](const Instruction& m, T a, T b) {
        return a != a || b != b ? canonical(std::numeric_limits<T>::quiet_NaN())
                                : greater(flushed_if(m.flush, a), flushed_if(m.flush, b));
      });
    }
    if (least) {
      return per_lane_with_modes<T, T, T>([](const Instruction& m, T a, T b) {
        return canonical(lesser(flushed_if(m.flush, a), flushed_if(m.flush, b)));
      });
    }
    return per_lane_with_modes<T, T, T>([](const Instruction& m, T a, T b) {
      return canonical(greater(flushed_if(m.flush, a), flushed_if(m.flush, b)));
    });
  }
  if (d.is("neg")) {
    return per_lane_with_modes<T, T>([](const Instruction& m, T a) { return canonical(-flushed_if(m.flush, a)); });
  }
  if (d.is("abs")) {
    return per_lane_with_modes<T, T>(
        [](const Instruction& m, T a) { return canonical(std::fabs(flushed_if(m.flush, a))); });
  }
  if (d.is("copysign")) return per_lane<T, T, T>([](T a, T b) { return std::copysign(b, a); });
  return nullptr;
}

// The hardware's functions of floats flush subnormals, of their operands and results, with .ftz; without it they scale.
template <typename F>
Execute approximation(F) {
  return per_lane_with_modes<float, float>(
      [](const Instruction& m, float a) { return canonical(flushed_if(m.flush, F{}(flushed_if(m.flush, a)))); });
}

Execute approximate(Decoder& d) {
  if (d.type() == Type::f64 && d.is("rcp") && d.has("ftz")) {  // has the upper half of its bits
    return per_lane<double, double>(
        [](double a) { return std::bit_cast<double>(std::bit_cast<uint64_t>(1 / a) & 0xffffffff00000000u); });
  }
  if (d.type() != Type::f32) return nullptr;
  if (d.is("div")) {
    return per_lane_with_modes<float, float, float>([](const Instruction& m, float a, float b) {
      return canonical(flushed_if(m.flush, flushed_if(m.flush, a) / flushed_if(m.flush, b)));
    });
  }
  if (d.is("rcp")) return approximation([](float a) { return 1 / a; });
  if (d.is("sqrt")) return approximation([](float a) { return std::sqrt(a); });
  if (d.is("rsqrt")) return approximation([](float a) { return static_cast<float>(1 / std::sqrt(double{a})); });
  if (d.is("ex2")) return approximation([](float a) { return std::exp2(a); });
  if (d.is("lg2")) return approximation([](float a) { return std::log2(a); });
  if (d.is("sin")) return approximation([](float a) { return std::sin(a); });
  if (d.is("cos")) return approximation([](float a) { return std::cos(a); });
  if (d.is("tanh")) return approximation([](float a) { return std::tanh(a); });
  return nullptr;
}

}  // namespace

Execute decode_floats(Decoder& d) {
  const Type type = d.type();
  if (type != Type::f32 && type != Type::f64) return nullptr;
  const unsigned bits = bits_of(type);
  bool known = false;
  for (const char* one : {"rcp", "sqrt", "neg", "abs", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"}) {
    if (!d.is(one)) continue;
    d.take(bits, {bits});
    known = true;
  }
  for (const char* two : {"add", "sub", "mul", "div", "min", "max", "copysign"}) {
    if (!d.is(two)) continue;
    d.take(bits, {bits, bits});
    known = true;
  }
  if (d.is("fma") || d.is("mad")) {
    d.take(bits, {bits, bits, bits});
    known = true;
  }
  if (!known) return nullptr;
  d.take_modes();
  if (d.has("approx") || d.has("full")) return approximate(d);
  const Instruction& i = d.instruction();
  if (d.is("add") || d.is("sub") || d.is("mul")) {
    // ptxas may contract these where they do not say how they round. nvcc writes it with --fmad=false.
    if (!d.has("rn") && !d.has("rz") && !d.has("rm") && !d.has("rp"))
      d.fail("ptxas may fuse this with another, as it has no .rn");
  }
  const Execute execute = for_type(FloatTypes{}, type, [&](auto t) { return exact<decltype(t)>(d, i); });
  if (execute != nullptr) return execute;
  return for_type(FloatTypes{}, type, [&](auto t) { return unrounded<decltype(t)>(d, i); });
}

}  // namespace dgc::ptx
