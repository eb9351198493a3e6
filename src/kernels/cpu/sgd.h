#pragma once

#include <cstdint>

namespace dgc {

struct SgdRule {
  float lr = 0, momentum = 0, weight_decay = 0, scale = 1;
  bool nesterov = false;
};

// The step of SgdArgs (kernels/op_args.h) on a stretch of n elements. m: null where rule.momentum is 0 and is not kept.
void sgd_chunk(const SgdRule& rule, const float* g, int64_t n, float* m, float* w);

}  // namespace dgc
