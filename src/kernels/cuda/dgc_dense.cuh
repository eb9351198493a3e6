// What travels dense: pack gathers the tensors' gradients into one buffer, 8 bytes per element (in fp16, with what was
// held back, 14); the step on what comes back is momentum SGD (SgdArgs with a scale of 1), 20 bytes per element.
#pragma once

#include "kernels/cuda/dgc_block.cuh"
#include "kernels/cuda/sgd_rule.cuh"
#include "kernels/wire_codes.h"

namespace dgc::cuda {

// Calls body(place in the packed buffer, place in the arena).
template <typename Body>
__device__ inline void each_dense(const DgcDense& dense, const Body& body) {
  const int64_t step = int64_t{gridDim.x} * kDgcThreads;
  for (int64_t i = int64_t{blockIdx.x} * kDgcThreads + threadIdx.x; i < dense.numel; i += step) {
    int low = 0, high = dense.count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (dense.ranges[middle].packed_at <= i) {
        low = middle;
      } else {
        high = middle;
      }
    }
    body(i, dense.ranges[low].offset + (i - dense.ranges[low].packed_at));
  }
}

__device__ inline void step_dense(const DgcStepArgs& a, float lr) {
  const SgdRule rule{lr, a.momentum, a.weight_decay, 1, a.nesterov};
  each_dense(a.dense, [&](int64_t packed, int64_t at) {
    float m = a.m[at], w = a.w[at];
    sgd_element(rule, a.dense_sum[packed], m, w);
    a.m[at] = m;
    a.w[at] = w;
  });
}

struct DgcPack {
  static constexpr const char* kName = "dgc_pack";
  static constexpr int kBlock = kDgcThreads;
  using Args = DgcPackArgs;
  struct Shared {};

  __device__ static void run(const Args& a, Shared&) {
    const float scale = a.scale != nullptr ? *a.scale : 1.f;
    each_dense(a.dense, [&](int64_t packed, int64_t at) { a.packed[packed] = scale * a.arena[at]; });
  }
};

struct DgcPackHalf {
  static constexpr const char* kName = "dgc_pack_half";
  static constexpr int kBlock = kDgcThreads;
  using Args = DgcPackHalfArgs;
  struct Shared {};

  __device__ static void run(const Args& a, Shared&) {
    if (a.control->skip != 0) return;
    each_dense(a.dense, [&](int64_t packed, int64_t at) {
      const float x = fmaf(*a.scale, a.arena[at], a.residual[at]);
      const uint32_t code = value_code(WireValues::fp16, x, 0);
      a.packed[packed] = static_cast<uint16_t>(code);
      a.residual[at] = wire_finite(x) ? x - value_of(WireValues::fp16, code, 0) : 0.f;
    });
  }
};

struct DgcSumHalf {
  static constexpr const char* kName = "dgc_sum_half";
  static constexpr int kBlock = kDgcThreads;
  using Args = DgcSumHalfArgs;
  struct Shared {};

  __device__ static void run(const Args& a, Shared&) {
    const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i >= a.numel) return;
    float sum = value_of(WireValues::fp16, a.packed[i], 0);
    for (int worker = 1; worker < a.workers; ++worker) {
      sum += value_of(WireValues::fp16, a.packed[worker * a.numel + i], 0);
    }
    a.sum[i] = sum;
  }
};

inline int64_t dense_blocks(int64_t numel) { return (numel + kDgcThreads - 1) / kDgcThreads; }

template <typename Queue>
void dgc_pack(Queue& queue, const DgcPackArgs& args) {
  queue.template run<DgcPack>(dense_blocks(args.dense.numel), args);
}

template <typename Queue>
void dgc_pack_half(Queue& queue, const DgcPackHalfArgs& args) {
  queue.template run<DgcPackHalf>(dense_blocks(args.dense.numel), args);
}

template <typename Queue>
void dgc_sum_half(Queue& queue, const DgcSumHalfArgs& args) {
  queue.template run<DgcSumHalf>(dense_blocks(args.numel), args);
}

}  // namespace dgc::cuda
