#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/ptx/interpreter/kernel.h"
#include "tests/ptx/interpreter/lanes.h"

// Floats as a GPU rounds and flushes them.
namespace dgc::ptx {

// A NaN that a GPU computes as a float has these bits, whatever its operands were.
template <typename T>
T canonical(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value != value ? std::bit_cast<float>(0x7fffffffu) : value;
  } else {
    return value;
  }
}

inline float flushed(float value) { return std::fabs(value) < 0x1p-126f ? std::copysign(0.f, value) : value; }

// .sat: NaN becomes 0.
template <typename T>
T saturated(T value) {
  return value > T{0} ? (value < T{1} ? value : T{1}) : T{0};
}

// NaN loses to a number, and -0 is less than +0.
template <typename T>
T lesser(T a, T b) {
  if (a != a) return canonical(b);
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T greater(T a, T b) {
  return -lesser(-a, -b);
}

// With the processor's rounding mode set for the time of the call.
float rounded_sum(Rounding, float a, float b);
float rounded_product(Rounding, float a, float b);
float rounded_fma(Rounding, float a, float b, float c);
float rounded_quotient(Rounding, float a, float b);
float rounded_root(Rounding, float a);
double rounded_sum(Rounding, double a, double b);
double rounded_product(Rounding, double a, double b);
double rounded_fma(Rounding, double a, double b, double c);
double rounded_quotient(Rounding, double a, double b);
double rounded_root(Rounding, double a);
float rounded_float(Rounding, double a);
float rounded_float(Rounding, int64_t a);
float rounded_float(Rounding, uint64_t a);
double rounded_double(Rounding, int64_t a);
double rounded_double(Rounding, uint64_t a);

// To an integer of the same type: .rni, .rzi, .rmi, .rpi.
template <typename T>
T integral(Rounding rounding, T value) {
  switch (rounding) {
    case Rounding::nearest:
      return std::nearbyint(value);
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      break;
  }
  return std::ceil(value);
}

// Numbers beyond an integer's range become its bounds; NaN becomes 0, or where either has 64 bits the highest one.
template <typename To, typename From>
To to_integer(Rounding rounding, From value) {
  if (value != value) {
    constexpr bool kLong = sizeof(To) == 8 || sizeof(From) == 8;
    return kLong ? static_cast<To>(uint64_t{1} << (8 * sizeof(To) - 1)) : To{0};
  }
  const From whole = integral(rounding, value);
  const From above = std::ldexp(From{1}, std::numeric_limits<To>::digits);  // the first number past the range
  if (whole >= above) return std::numeric_limits<To>::max();
  if (whole < static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return static_cast<To>(whole);
}

float widened(Half value);
float widened(BFloat value);
Half narrowed_to_half(float value);  // to nearest even
BFloat narrowed_to_bfloat(float value);

}  // namespace dgc::ptx
