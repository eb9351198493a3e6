// Compiled with -frounding-math: the compiler must not compute as if the rounding mode never changed.
#include "tests/ptx/interpreter/float_math.h"

#include <cfenv>

#include "tensor/half.h"

namespace dgc::ptx {
namespace {

int processors_name(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest:
      return FE_TONEAREST;
    case Rounding::zero:
      return FE_TOWARDZERO;
    case Rounding::down:
      return FE_DOWNWARD;
    case Rounding::up:
      break;
  }
  return FE_UPWARD;
}

// The value, of which the compiler knows nothing: so an operation on it stays between the two changes of the mode.
template <typename T>
T hidden(T value) {
  volatile T memory = value;
  return memory;
}

template <typename F, typename... A>
auto with_rounding(Rounding rounding, const F& f, A... operands) {
  std::fesetround(processors_name(rounding));
  const auto result = hidden(f(hidden(operands)...));
  std::fesetround(FE_TONEAREST);
  return result;
}

constexpr auto kSum = [](auto a, auto b) { return a + b; };
constexpr auto kProduct = [](auto a, auto b) { return a * b; };
constexpr auto kQuotient = [](auto a, auto b) { return a / b; };
constexpr auto kFma = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto kRoot = [](auto a) { return std::sqrt(a); };
constexpr auto kFloat = [](auto a) { return static_cast<float>(a); };
constexpr auto kDouble = [](auto a) { return static_cast<double>(a); };

}  // namespace

float rounded_sum(Rounding r, float a, float b) { return with_rounding(r, kSum, a, b); }
float rounded_product(Rounding r, float a, float b) { return with_rounding(r, kProduct, a, b); }
float rounded_fma(Rounding r, float a, float b, float c) { return with_rounding(r, kFma, a, b, c); }
float rounded_quotient(Rounding r, float a, float b) { return with_rounding(r, kQuotient, a, b); }
float rounded_root(Rounding r, float a) { return with_rounding(r, kRoot, a); }
double rounded_sum(Rounding r, double a, double b) { return with_rounding(r, kSum, a, b); }
double rounded_product(Rounding r, double a, double b) { return with_rounding(r, kProduct, a, b); }
double rounded_fma(Rounding r, double a, double b, double c) { return with_rounding(r, kFma, a, b, c); }
double rounded_quotient(Rounding r, double a, double b) { return with_rounding(r, kQuotient, a, b); }
double rounded_root(Rounding r, double a) { return with_rounding(r, kRoot, a); }
float rounded_float(Rounding r, double a) { return with_rounding(r, kFloat, a); }
float rounded_float(Rounding r, int64_t a) { return with_rounding(r, kFloat, a); }
float rounded_float(Rounding r, uint64_t a) { return with_rounding(r, kFloat, a); }
double rounded_double(Rounding r, int64_t a) { return with_rounding(r, kDouble, a); }
double rounded_double(Rounding r, uint64_t a) { return with_rounding(r, kDouble, a); }

float widened(Half value) { return canonical(half_to_float(value.bits)); }
float widened(BFloat value) { return canonical(std::bit_cast<float>(uint32_t{value.bits} << 16)); }
Half narrowed_to_half(float value) {
  if (value != value) return {0x7fff};
  return {float_to_half(value)};
}
BFloat narrowed_to_bfloat(float value) {
  if (value != value) return {0x7fff};
  const auto bits = std::bit_cast<uint32_t>(value);
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace dgc::ptx
