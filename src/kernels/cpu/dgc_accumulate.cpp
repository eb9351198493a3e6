#include "kernels/cpu/dgc_accumulate.h"

#include <algorithm>
#include <cmath>

#include "tensor/simd.h"

// The one pass over memory. Groups of 64 elements are accumulated without a branch, and the largest magnitude of each
// group is kept. Only a group whose largest magnitude reaches the guess, about one in fifteen, is looked at element by
// element, while it is still in the first-level cache.
namespace dgc {
namespace {

constexpr size_t kAccumulateGroup = 64;

enum class Rule { momentum, nesterov, plain };

// The functions below must be inlined into the multiversioned functions, or they would be compiled for the oldest
// machine.
template <Rule rule>
[[gnu::always_inline]] inline int32_t accumulate_group(const float* __restrict__ g, float* __restrict__ u,
                                                       float* __restrict__ v, float scale, float momentum,
                                                       size_t count) {
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
  // These are copies because, as far as the compiler knows, every store could change what a reference refers to.
  const auto [g, u, v, u_from, v_from, n, scale, momentum, guess, keys, first_index] = a;
  uint64_t* out = keys;
  for (size_t begin = 0; begin < n; begin += kAccumulateGroup) {
    // The constant trip count is what lets the compiler keep a whole group in registers.
    const size_t count = std::min(kAccumulateGroup, n - begin);
    // u and v are copied to where they are worked on next, so that the loop below updates memory in place only.
    if (v_from != v) std::copy_n(v_from + begin, count, v + begin);
    if (rule != Rule::plain && u_from != u) std::copy_n(u_from + begin, count, u + begin);
    float* const own_u = rule == Rule::plain ? nullptr : u + begin;  // the plain rule has no u
    const int32_t top = count == kAccumulateGroup
                            ? accumulate_group<rule>(g + begin, own_u, v + begin, scale, momentum, kAccumulateGroup)
                            : accumulate_group<rule>(g + begin, own_u, v + begin, scale, momentum, count);
    if (top < guess || keys == nullptr) continue;
    for (size_t i = begin; i < begin + count; ++i) {
      const int32_t magnitude = magnitude_bits(v[i]);
      if (magnitude >= guess) *out++ = selection_key(magnitude, first_index + static_cast<uint32_t>(i));
    }
  }
  return static_cast<uint32_t>(out - keys);
}

}  // namespace

DGC_MULTIVERSION uint32_t dgc_accumulate_momentum(const DgcAccumulateArgs& a) { return accumulate<Rule::momentum>(a); }
DGC_MULTIVERSION uint32_t dgc_accumulate_nesterov(const DgcAccumulateArgs& a) { return accumulate<Rule::nesterov>(a); }
DGC_MULTIVERSION uint32_t dgc_accumulate_plain(const DgcAccumulateArgs& a) { return accumulate<Rule::plain>(a); }

}  // namespace dgc
