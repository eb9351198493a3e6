// Dense momentum SGD (SgdArgs): reads g, m and w and writes m and w, 20 bytes per parameter, or 12 without momentum.
// The learning rate, the skip flag and the gradient's scale come from device memory.
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/sgd_rule.cuh"

namespace dgc::cuda {

template <int V>
struct SgdStep : ElementwiseKernel {
  static constexpr const char* kName = "sgd_step";
  struct Args {
    SgdArgs args;
    const float* g;
    float* m;  // null: no momentum
    float* w;
  };

  __device__ static void run(const Args& a, Shared&) {
    const SgdArgs& args = a.args;
    if (args.control->skip != 0) return;
    const SgdRule rule{args.control->lr, args.momentum, args.weight_decay, *args.scale, args.nesterov};
    each_element<V>(args.numel, [&]<int N>(int64_t i) {
      float g[N], m[N] = {}, w[N];
      load(a.g + i, g);
      if (a.m != nullptr) load(a.m + i, m);
      load(a.w + i, w);
#pragma unroll
      for (int j = 0; j < N; ++j) sgd_element(rule, g[j], m[j], w[j]);
      if (a.m != nullptr) store(m, a.m + i);
      store(w, a.w + i);
    });
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::sgd_step(const SgdArgs& args, ConstView g, View m, View w) {
  Queue queue(*this);
  const auto run = [&]<int V>() {
    queue.run<SgdStep<V>>(elementwise_blocks(args.numel, V), {args, g.f32(), m.f32(), w.f32()});
  };
  dispatch_packs<float>(0, run, g.data, m.data, w.data);
}

}  // namespace dgc
