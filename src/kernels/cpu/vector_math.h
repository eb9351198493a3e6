#pragma once

#include <bit>
#include <cstdint>

// exp, sigmoid and tanh that the compiler can vectorise: no calls, no branches, and only operations that give the same
// bits at any width. Call them from DGC_MULTIVERSION functions. All are within 3e-7 of the truth, relative to it; a NaN
// stays a NaN.
namespace dgc {

// exp(x) = scale * (1 + rest), where scale is a power of two and |rest| < 0.42.
struct SplitExp {
  float scale, rest;
};

// x is at most 0. One below -87 counts as -87, so that scale stays a normal number.
[[gnu::always_inline]] inline SplitExp split_exp(float x) {
  constexpr float kRound = 0x1.8p23f;  // added, it leaves the nearest integer in the lowest bits
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // their sum is ln 2; n * kLn2High is exact
  x = x < -87.f ? -87.f : x;
  const float shifted = x * 0x1.715476p0f + kRound, n = shifted - kRound;  // x / ln 2
  const float r = (x - n * kLn2High) - n * kLn2Low;                        // |r| <= ln 2 / 2
  // The series of exp(r) - 1; what is left out is below 6e-9.
  float sum = 1.f / 5040;
  sum = sum * r + 1.f / 720;
  sum = sum * r + 1.f / 120;
  sum = sum * r + 1.f / 24;
  sum = sum * r + 1.f / 6;
  sum = sum * r + 0.5f;
  return {std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3f800000u), sum * (r * r) + r};
}

// exp(x) of an x that is at most 0. Where x is below -87 this is 0.
[[gnu::always_inline]] inline float exp_of_negative(float x) {
  const SplitExp e = split_exp(x);
  return x < -87.f ? 0.f : e.scale * e.rest + e.scale;
}

[[gnu::always_inline]] inline float vector_sigmoid(float x) {
  const SplitExp e = split_exp(x < 0 ? x : -x);
  const float small = e.scale * e.rest + e.scale;  // exp(-|x|)
  return (x < 0 ? small : 1.f) / (1.f + small);
}

// Computed from exp(-2 |x|) - 1, which is exact to the last bits where x is small.
[[gnu::always_inline]] inline float vector_tanh(float x) {
  const SplitExp e = split_exp(x < 0 ? 2 * x : -2 * x);
  const float minus_one = e.scale * e.rest + (e.scale - 1.f);
  const float size = -minus_one / (minus_one + 2.f);
  return x < 0 ? -size : size;
}

}  // namespace dgc
