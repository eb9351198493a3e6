#include "kernels/cpu/sgd.h"

#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "tensor/simd.h"

namespace dgc {

// The order of roundings is part of the contract: the product with the gradient scale is rounded on its own, so that
// what enters the momentum is the gradient itself; every other product is fused into the sum that it feeds.
DGC_MULTIVERSION void sgd_chunk(const SgdRule& rule, const float* g, int64_t n, float* m, float* w) {
  const float lr = rule.lr, momentum = rule.momentum, decay = rule.weight_decay, scale = rule.scale;
  const auto velocity = [=](float gradient, float old, float weight, float& d) __attribute__((always_inline)) {
    d = std::fma(decay, weight, scale * gradient);
    return std::fma(momentum, old, d);
  };
  float d = 0;
  if (m == nullptr) {
    for (int64_t i = 0; i < n; ++i) w[i] = std::fma(-lr, velocity(g[i], 0, w[i], d), w[i]);
  } else if (rule.nesterov) {
    for (int64_t i = 0; i < n; ++i) {
      m[i] = velocity(g[i], m[i], w[i], d);
      w[i] = std::fma(-lr, std::fma(momentum, m[i], d), w[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      m[i] = velocity(g[i], m[i], w[i], d);
      w[i] = std::fma(-lr, m[i], w[i]);
    }
  }
}

void CpuBackend::sgd_step(const SgdArgs& args, ConstView g, View m, View w) {
  if (args.control->skip != 0) return;
  const SgdRule rule{args.control->lr, args.momentum, args.weight_decay, *args.scale, args.nesterov};
  const float* const gradient = g.f32();
  float *const momentum = m.f32(), *const weights = w.f32();
  for_chunks(args.numel, kElementwiseChunk, [&](int64_t at, int64_t n) {
    sgd_chunk(rule, gradient + at, n, momentum == nullptr ? nullptr : momentum + at, weights + at);
  });
}

}  // namespace dgc
