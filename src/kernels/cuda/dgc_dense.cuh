// The tensors that travel dense. Their step by the sum that comes back is momentum SGD (SgdArgs with a scale of 1),
// with 20 bytes of traffic per element, 12 without momentum.
#pragma once

#include "kernels/cuda/dgc_block.cuh"
#include "kernels/cuda/last_start.cuh"
#include "kernels/cuda/sgd_rule.cuh"

namespace dgc::cuda {

// Calls body(index in the packed buffer, index in the arena) for every element.
template <typename Body>
__device__ inline void each_dense(const DgcDense& dense, const Body& body) {
  const int64_t step = int64_t{gridDim.x} * kDgcThreads;
  for (int64_t i = int64_t{blockIdx.x} * kDgcThreads + threadIdx.x; i < dense.numel; i += step) {
    const DgcRange& range =
        dense.ranges[last_start(dense.count, i, [&](int number) { return dense.ranges[number].packed_at; })];
    body(i, range.offset + (i - range.packed_at));
  }
}

__device__ inline void step_dense(const DgcStepArgs& a, float lr) {
  const SgdRule rule{lr, a.momentum, a.weight_decay, 1, a.nesterov};
  each_dense(a.dense, [&](int64_t packed, int64_t at) {
    float m = a.m == nullptr ? 0.f : a.m[at], w = a.w[at];
    sgd_element(rule, a.dense_sum[packed], m, w);
    if (a.m != nullptr) a.m[at] = m;
    a.w[at] = w;
  });
}

inline int64_t dense_blocks(int64_t numel) { return (numel + kDgcThreads - 1) / kDgcThreads; }

}  // namespace dgc::cuda
