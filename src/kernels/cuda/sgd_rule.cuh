// Momentum SGD on one element (SgdArgs). The roundings are part of the definition and the same as the CPU's: the
// product with the scale is rounded on its own, and every other product is fused into the sum that it feeds.
#pragma once

#include "kernels/cuda/model.h"

namespace dgc::cuda {

struct SgdRule {
  float lr, momentum, weight_decay, scale;
  bool nesterov;
};

__device__ inline void sgd_element(const SgdRule& rule, float g, float& m, float& w) {
  const float d = fmaf(rule.weight_decay, w, rule.scale * g);
  m = fmaf(rule.momentum, m, d);
  w = fmaf(-rule.lr, rule.nesterov ? fmaf(rule.momentum, m, d) : m, w);
}

}  // namespace dgc::cuda
