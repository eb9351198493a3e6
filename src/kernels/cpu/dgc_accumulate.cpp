#include "kernels/cpu/dgc_accumulate.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/simd.h"

// The one pass over memory. Groups of 64 elements are moved on without a branch while their largest magnitude is kept;
// only a group that reaches the guess, about one in fifteen, is looked at element by element, still in the first-level
// cache.
namespace dgc {
namespace {

constexpr size_t kGroup = 64;

enum class Rule { momentum, nesterov, plain };

// The functions below must end up inside the multiversioned ones, or they would be compiled for the oldest machine.
template <Rule rule>
[[gnu::always_inline]] inline int32_t accumulate_group(const DgcAccumulateArgs& a, size_t begin, size_t count) {
  const float* __restrict__ g = a.g + begin;
  float* __restrict__ u = a.u + begin;
  float* __restrict__ v = a.v + begin;
  const float scale = a.scale, momentum = a.momentum;
  int32_t top = 0;
  for (size_t i = 0; i < count; ++i) {
    const float gradient = scale * g[i];
    float velocity;
    if constexpr (rule == Rule::momentum) {
      u[i] = std::fma(momentum, u[i], gradient);
      velocity = v[i] + u[i];
    } else if constexpr (rule == Rule::nesterov) {
      u[i] = momentum * (u[i] + gradient);
      velocity = (v[i] + u[i]) + gradient;
    } else {
      velocity = v[i] + gradient;
    }
    v[i] = velocity;
    top = std::max(top, magnitude_bits(velocity));
  }
  return top;
}

template <Rule rule>
[[gnu::always_inline]] inline uint32_t accumulate(const DgcAccumulateArgs& a) {
  uint64_t* out = a.keys;
  for (size_t begin = 0; begin < a.n; begin += kGroup) {
    // The constant trip count is what lets the compiler keep a whole group in registers.
    const size_t count = std::min(kGroup, a.n - begin);
    const int32_t top =
        count == kGroup ? accumulate_group<rule>(a, begin, kGroup) : accumulate_group<rule>(a, begin, count);
    if (top < a.guess || a.keys == nullptr) continue;
    for (size_t i = begin; i < begin + count; ++i) {
      const int32_t magnitude = magnitude_bits(a.v[i]);
      if (magnitude >= a.guess) *out++ = selection_key(magnitude, a.first_index + static_cast<uint32_t>(i));
    }
  }
  return static_cast<uint32_t>(out - a.keys);
}

}  // namespace

DGC_MULTIVERSION uint32_t dgc_accumulate_momentum(const DgcAccumulateArgs& a) { return accumulate<Rule::momentum>(a); }
DGC_MULTIVERSION uint32_t dgc_accumulate_nesterov(const DgcAccumulateArgs& a) { return accumulate<Rule::nesterov>(a); }
DGC_MULTIVERSION uint32_t dgc_accumulate_plain(const DgcAccumulateArgs& a) { return accumulate<Rule::plain>(a); }

}  // namespace dgc
