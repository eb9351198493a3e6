// Packs what travels dense: dgc_pack gathers the tensors' gradients into one buffer, with 8 bytes of traffic per
// element; dgc_pack_half does so in fp16 and keeps the rounding errors, with 14 bytes. dgc_sum_half adds up the
// workers' fp16 buffers.
#include "kernels/cuda/dgc_dense.cuh"
#include "kernels/cuda/queue.h"
#include "kernels/wire_codes.h"

namespace dgc::cuda {

struct DgcPack {
  static constexpr const char* kName = "dgc_pack";
  static constexpr int kBlock = kDgcThreads;
  using Args = DgcPackArgs;
  struct Shared {};

  __device__ static void run(const Args& a, Shared&) {
    const float scale = *a.scale;
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

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::dgc_pack(const DgcPackArgs& args) {
  Queue(*this).run<DgcPack>(dense_blocks(args.dense.numel), args);
}

void KernelBackend::dgc_pack_half(const DgcPackHalfArgs& args) {
  Queue(*this).run<DgcPackHalf>(dense_blocks(args.dense.numel), args);
}

void KernelBackend::dgc_sum_half(const DgcSumHalfArgs& args) {
  Queue(*this).run<DgcSumHalf>(dense_blocks(args.numel), args);
}

}  // namespace dgc
