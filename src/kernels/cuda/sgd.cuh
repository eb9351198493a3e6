// Dense momentum SGD (SgdArgs): reads g, m and w, writes m and w, 20 bytes per parameter. The learning rate, whether to
// skip and the gradient's scale come from device memory. The roundings are part of the definition, and the same as the
// CPU's: the product with the scale is rounded on its own, every other one is fused into the sum that it feeds.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/dispatch.h"

namespace dgc::cuda {

template <int V>
struct SgdStep {
  static constexpr const char* kName = "sgd_step";
  static constexpr int kBlock = kElementwiseBlock;
  struct Args {
    SgdArgs rule;
    const float* g;
    float* m;
    float* w;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    if (a.rule.control->skip != 0) return;
    const float lr = a.rule.control->lr, scale = *a.rule.scale;
    const float momentum = a.rule.momentum, decay = a.rule.weight_decay;
    each_element<V>(a.rule.numel, [&]<int N>(int64_t i) {
      float g[N], m[N], w[N];
      load(a.g + i, g);
      load(a.m + i, m);
      load(a.w + i, w);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float d = fmaf(decay, w[j], scale * g[j]);
        m[j] = fmaf(momentum, m[j], d);
        w[j] = fmaf(-lr, a.rule.nesterov ? fmaf(momentum, m[j], d) : m[j], w[j]);
      }
      store(m, a.m + i);
      store(w, a.w + i);
    });
  }
};

template <typename Queue>
void sgd_step(Queue& queue, const SgdArgs& args, ConstView g, View m, View w) {
  const auto run = [&]<int V>() {
    queue.template run<SgdStep<V>>(elementwise_blocks(args.numel, V), {args, g.f32(), m.f32(), w.f32()});
  };
  dispatch_packs<float>(0, run, g.data, m.data, w.data);
}

}  // namespace dgc::cuda
