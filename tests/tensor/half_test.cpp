#include "tensor/half.h"

#include <bit>
#include <catch.hpp>
#include <cmath>
#include <limits>

using namespace dgc;

namespace {

bool is_nan_half(uint32_t h) { return (h & 0x7fffu) > 0x7c00u; }

// The format's definition: sign, 5 bits of exponent (bias 15), 10 bits of fraction.
double value_of(uint32_t h) {
  const int exponent = static_cast<int>(h >> 10 & 31), fraction = static_cast<int>(h & 1023);
  double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) magnitude = fraction == 0 ? INFINITY : NAN;
  return (h & 0x8000u) != 0 ? -magnitude : magnitude;
}

// The nearest half as a double, ties to even: scale so that one step of the format is 1, round, scale back. All of it
// is exact in double but for the rounding itself.
double rounded(float x) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  const double result = std::nearbyint(x / step) * step;
  return std::fabs(result) > 65504 ? std::copysign(INFINITY, x) : result;
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

bool rounds_right(float x) { return same(value_of(float_to_half(x)), rounded(x)); }

}  // namespace

TEST_CASE("every half has the value its bits define and comes back as itself", "[tensor]") {
  int wrong_value = 0, wrong_bits = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    const float value = half_to_float(static_cast<uint16_t>(h));
    wrong_value += !same(value, value_of(h));
    const uint32_t back = float_to_half(value);
    // A NaN stays a NaN of the same sign; its payload is not kept.
    wrong_bits += is_nan_half(h) ? !is_nan_half(back) || (back ^ h) >> 15 != 0 : back != h;
  }
  CHECK(wrong_value == 0);
  CHECK(wrong_bits == 0);
}

TEST_CASE("floats round to the nearest half, ties to even", "[tensor]") {
  int wrong = 0;
  // Between each half and the next: the tie, its neighbours and the neighbours of the halves themselves. The last pair
  // is 65504 and what would be 65536, where ties go to infinity.
  for (uint32_t h = 0; h < 0x7c00; ++h) {
    const auto low = static_cast<float>(value_of(h));
    const auto high = h == 0x7bff ? 65536.f : static_cast<float>(value_of(h + 1));
    const float tie = (low + high) / 2;
    for (const float at : {low, tie, high}) {
      for (const float x : {at, std::nextafter(at, 0.f), std::nextafter(at, 1e9f)}) {
        wrong += !rounds_right(x) + !rounds_right(-x);
      }
    }
  }
  CHECK(wrong == 0);

  // And floats of every size, subnormal ones, infinities and NaN with them: each 4099th bit pattern (a prime).
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 4099)
    wrong += !rounds_right(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  CHECK(wrong == 0);
}

TEST_CASE("halves that everybody knows", "[tensor]") {
  CHECK(float_to_half(0.f) == 0x0000);
  CHECK(float_to_half(-0.f) == 0x8000);
  CHECK(float_to_half(1.f) == 0x3c00);
  CHECK(float_to_half(-2.f) == 0xc000);
  CHECK(float_to_half(65504.f) == 0x7bff);
  CHECK(float_to_half(65519.996f) == 0x7bff);
  CHECK(float_to_half(65520.f) == 0x7c00);  // the tie to infinity
  CHECK(float_to_half(0x1p-24f) == 0x0001);
  CHECK(float_to_half(0x1p-25f) == 0x0000);  // the tie to zero
  CHECK(float_to_half(0x1.8p-24f) == 0x0002);
  CHECK(float_to_half(0x1p-14f) == 0x0400);
  CHECK(float_to_half(INFINITY) == 0x7c00);
  CHECK(float_to_half(-INFINITY) == 0xfc00);
  CHECK(float_to_half(1.f / 3) == 0x3555);
}
