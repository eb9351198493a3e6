// Steps the weights by all workers' messages (kernels/dgc_args.h), in ONE cooperative launch. First every message is
// checked. Then every block of 65,536 elements adds up what was sent, worker after worker and without atomics, and
// steps its weights. The result has the CPU's bits. With momentum correction and without weight decay, only what was
// sent is touched; else every element is, 20 bytes each. The tensors that travel dense take their step here too.
// DgcStep takes the same step by a sum that came as dense numbers: 12 bytes per element with momentum correction and
// without weight decay, else 20.
#include <algorithm>

#include "kernels/cuda/dgc_check.cuh"
#include "kernels/cuda/dgc_dense.cuh"
#include "kernels/cuda/dgc_memory.h"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

// One worker's entries are different elements, so threads may add them in any order. Between two workers all threads
// wait.
__device__ inline void add_messages(const DgcApplyArgs& a, const DgcSegment& s, int64_t local, float* sum) {
  for (int worker = 0; worker < a.workers; ++worker) {
    const DgcEntries e(DgcMessages{a}.payload(worker), s, local);
    for (unsigned i = e.begin + threadIdx.x; i < e.end; i += kDgcThreads) {
      sum[e.offsets[i]] += e.values[i];
    }
    __syncthreads();
  }
}

// An element that several workers sent is visited several times; after the first visit its sum is zero, which leaves
// the weight as it is.
__device__ inline void step_sent(const DgcApplyArgs& a, const DgcSegment& s, int64_t local, float lr, float* sum,
                                 float* w) {
  for (int worker = 0; worker < a.workers; ++worker) {
    const DgcEntries e(DgcMessages{a}.payload(worker), s, local);
    for (unsigned i = e.begin + threadIdx.x; i < e.end; i += kDgcThreads) {
      const unsigned at = e.offsets[i];
      w[at] = fmaf(-lr, sum[at], w[at]);
      sum[at] = 0;
    }
    __syncthreads();
  }
}

__device__ inline void step_element(const DgcStepArgs& a, float lr, float sum, float& m, float& w) {
  const float d = a.momentum_correction ? a.weight_decay * w : fmaf(a.weight_decay, w, sum);
  m = fmaf(a.momentum, m, d);
  const float decayed = a.nesterov ? fmaf(a.momentum, m, d) : m;
  w = fmaf(-lr, a.momentum_correction ? sum + decayed : decayed, w);
}

__device__ inline void step_four(const DgcStepArgs& a, float lr, const float4& sum, float4& m, float4& w) {
  step_element(a, lr, sum.x, m.x, w.x);
  step_element(a, lr, sum.y, m.y, w.y);
  step_element(a, lr, sum.z, m.z, w.z);
  step_element(a, lr, sum.w, m.w, w.w);
}

__device__ inline void step_all(const DgcStepArgs& a, float lr, int numel, float* sum, float* m, float* w) {
  auto* sum4 = reinterpret_cast<float4*>(sum);
  auto* m4 = reinterpret_cast<float4*>(m);
  auto* w4 = reinterpret_cast<float4*>(w);
  constexpr int kAtOnce = 2;  // loads of each array that are under way at once
  const int fours = numel / 4;
  for (int first = static_cast<int>(threadIdx.x); first < fours; first += kAtOnce * kDgcThreads) {
    float4 s[kAtOnce], d[kAtOnce], x[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kDgcThreads;
      if (i < fours) s[j] = sum4[i], d[j] = m4[i], x[j] = w4[i];
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kDgcThreads;
      if (i >= fours) continue;
      step_four(a, lr, s[j], d[j], x[j]);
      m4[i] = d[j];
      w4[i] = x[j];
      // Nearly all sums are zero already and need no store. Their bits are compared, because a sum of -0 must become 0.
      if ((__float_as_uint(s[j].x) | __float_as_uint(s[j].y) | __float_as_uint(s[j].z) | __float_as_uint(s[j].w)) !=
          0) {
        sum4[i] = make_float4(0, 0, 0, 0);
      }
    }
  }
  for (int i = fours * 4 + static_cast<int>(threadIdx.x); i < numel; i += kDgcThreads) {
    step_element(a, lr, sum[i], m[i], w[i]);
    sum[i] = 0;
  }
}

// True if a step leaves an element with a sum of zero as it is, and has no momentum.
__device__ inline bool only_sent_moves(const DgcStepArgs& a) { return a.momentum_correction && a.weight_decay == 0; }

struct DgcApply {
  static constexpr const char* kName = "dgc_apply";
  static constexpr int kBlock = kDgcThreads;
  struct Args {
    DgcApplyArgs a;
    DgcApplyScratch scratch;
  };
  using Shared = DgcCheckShared;

  __device__ static void run(const Args& args, Shared& shared) {
    use_if_sound(args.a, args.scratch, shared, [&] { apply(args.a); });
  }

  __device__ static void apply(const DgcApplyArgs& a) {
    const float lr = a.control->lr;
    for (int64_t block = blockIdx.x; block < a.table.blocks; block += gridDim.x) {
      const DgcSegment& s = a.table.segments[segment_of(a.table, block)];
      const int64_t local = block - s.first_block, first = local * kDgcBlock, at = s.offset + first;
      add_messages(a, s, local, a.sum + at);
      if (only_sent_moves(a)) {
        step_sent(a, s, local, lr, a.sum + at, a.w + at);
      } else {
        step_all(a, lr, static_cast<int>(smaller(kDgcBlock, s.numel - first)), a.sum + at, a.m + at, a.w + at);
      }
    }
    step_dense(a, lr);
  }
};

struct DgcStep {
  static constexpr const char* kName = "dgc_step";
  static constexpr int kBlock = kDgcThreads;
  using Args = DgcStepArgs;
  struct Shared {};

  __device__ static void run(const Args& a, Shared&) {
    if (a.control->skip != 0 || a.control->fault.kind != WireFaultKind::none) return;
    const float lr = a.control->lr;
    for (int64_t block = blockIdx.x; block < a.table.blocks; block += gridDim.x) {
      const DgcSegment& s = a.table.segments[segment_of(a.table, block)];
      const int64_t first = (block - s.first_block) * kDgcBlock, at = s.offset + first;
      const int numel = static_cast<int>(smaller(kDgcBlock, s.numel - first));
      if (only_sent_moves(a)) {
        for (int64_t i = at + threadIdx.x; i < at + numel; i += kDgcThreads) a.w[i] = fmaf(-lr, a.sum[i], a.w[i]);
      } else {
        step_all(a, lr, numel, a.sum + at, a.m + at, a.w + at);
      }
    }
    step_dense(a, lr);
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::dgc_step(const DgcStepArgs& args) {
  Queue(*this).run<DgcStep>(std::max(args.table.blocks, dense_blocks(args.dense.numel)), args);
}

void KernelBackend::dgc_apply(const DgcApplyArgs& args) {
  Queue queue(*this);
  if (dgc_->apply_blocks == 0) dgc_->apply_blocks = queue.cooperative_blocks<DgcApply>();
  const int64_t useful = std::max(int64_t{1}, args.table.blocks * args.workers + args.dense.numel / kDgcThreads);
  queue.run_cooperative<DgcApply>(std::min(dgc_->apply_blocks, useful),
                                  {args, dgc_->apply(args.workers, args.header.payload_bytes)});
}

}  // namespace dgc
