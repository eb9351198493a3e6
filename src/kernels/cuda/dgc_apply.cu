// Steps the weights by all workers' messages (kernels/dgc_args.h), in ONE cooperative launch. First every message is
// checked. Then every block of 65,536 elements adds up what was sent, worker after worker, in shared memory, and
// steps its weights. The result has the CPU's bits. With momentum correction and without weight decay, only what was
// sent is touched; else every element is, 16 bytes each. The tensors that travel dense take their step here too.
// DgcStep takes the same step by a sum that came as dense numbers. With momentum correction and without weight decay it
// reads 4 bytes per element, and 12 more are moved for each of four neighbours whose sums are not all zero; else it
// moves 20 to 24 bytes.
#include <algorithm>

#include "kernels/cuda/dgc_dense.cuh"
#include "kernels/cuda/dgc_memory.h"
#include "kernels/cuda/dgc_sums.cuh"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

template <typename Sums>
__device__ inline void add_messages(const DgcApplyArgs& a, const DgcSegment& s, int64_t local, const Sums& sums,
                                    DgcApplyShared& shared) {
  for (int first = 0; first < a.workers; first += kDgcThreads) {
    const int some = find_entries(a, s, local, first, shared);
    add_in_turn(some, sums, [&](int worker, unsigned number) {
      DgcEntry e{DgcEntry::kNone, 0};
      const unsigned i = shared.begin[worker] + number;
      if (i >= shared.end[worker]) return e;
      const std::byte* payload = DgcMessages{a}.payload(first + worker);
      e.at = reinterpret_cast<const uint16_t*>(payload + s.offsets_at)[i];
      e.value = reinterpret_cast<const float*>(payload + s.values_at)[i];
      return e;
    });
  }
}

// An element that several workers sent is visited several times, by any threads in any order. The first visit takes the
// sum away, and a visit that finds a sum of zero leaves the weight as it is. A sum of zero would change no weight: sums
// start at +0, so none is -0.
template <typename Sums>
__device__ inline void step_sent(const DgcApplyArgs& a, const DgcSegment& s, int64_t local, float lr, const Sums& sums,
                                 float* w, DgcApplyShared& shared) {
  for (int first = 0; first < a.workers; first += kDgcThreads) {
    const int some = find_entries(a, s, local, first, shared);
    each_sent(a, s, first, some, shared, [&](const unsigned(&at)[kDgcSentAtOnce]) {
      float taken[kDgcSentAtOnce];
#pragma unroll
      for (int j = 0; j < kDgcSentAtOnce; ++j) taken[j] = at[j] < kDgcBlock ? sums.take(at[j]) : 0;
#pragma unroll
      for (int j = 0; j < kDgcSentAtOnce; ++j) {
        if (__float_as_uint(taken[j]) != 0) w[at[j]] = fmaf(-lr, taken[j], w[at[j]]);
      }
    });
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

// Calls body<N>(i) for N groups of four elements, i, i + kDgcThreads and so on, while this thread has so many left of
// `fours` groups, and then body<1>(i).
template <int N, typename Body>
__device__ inline void each_four(int fours, const Body& body) {
  int i = static_cast<int>(threadIdx.x);
  for (; i + (N - 1) * kDgcThreads < fours; i += N * kDgcThreads) body.template operator()<N>(i);
  for (; i < fours; i += kDgcThreads) body.template operator()<1>(i);
}

template <typename Sums>
__device__ inline void step_all(const DgcStepArgs& a, float lr, int numel, const Sums& sums, float* m, float* w) {
  auto* m4 = reinterpret_cast<float4*>(m);
  auto* w4 = reinterpret_cast<float4*>(w);
  const int fours = numel / 4;
  each_four<2>(fours, [&]<int N>(int first) {
    float4 s[N], d[N], x[N];  // all loads are under way before the first result is used
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const int i = first + j * kDgcThreads;
      s[j] = sums.get_four(i), d[j] = m4[i], x[j] = w4[i];
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const int i = first + j * kDgcThreads;
      step_four(a, lr, s[j], d[j], x[j]);
      m4[i] = d[j];
      w4[i] = x[j];
      sums.clear_four(i, s[j]);
    }
  });
  for (int i = fours * 4 + static_cast<int>(threadIdx.x); i < numel; i += kDgcThreads) {
    step_element(a, lr, sums.get(i), m[i], w[i]);
    sums.clear(i);
  }
}

// Only for steps where only_sent_moves().
__device__ inline void step_summed(float lr, int numel, const DgcArenaSums& sums, float* w) {
  auto* w4 = reinterpret_cast<float4*>(w);
  const int fours = numel / 4;
  each_four<4>(fours, [&]<int N>(int first) {
    float4 s[N], x[N];
#pragma unroll
    for (int j = 0; j < N; ++j) s[j] = sums.get_four(first + j * kDgcThreads);
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] = any_bit(s[j]) ? w4[first + j * kDgcThreads] : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (!any_bit(s[j])) continue;
      const int i = first + j * kDgcThreads;
      w4[i] = make_float4(fmaf(-lr, s[j].x, x[j].x), fmaf(-lr, s[j].y, x[j].y), fmaf(-lr, s[j].z, x[j].z),
                          fmaf(-lr, s[j].w, x[j].w));
      sums.clear_four(i, s[j]);
    }
  });
  for (int i = fours * 4 + static_cast<int>(threadIdx.x); i < numel; i += kDgcThreads) {
    w[i] = fmaf(-lr, sums.get(i), w[i]);
    sums.clear(i);
  }
}

// True if a step leaves an element with a sum of zero as it is, and has no momentum.
__device__ inline bool only_sent_moves(const DgcStepArgs& a) { return a.momentum_correction && a.weight_decay == 0; }

struct DgcApply {
  static constexpr const char* kName = "dgc_apply";
  static constexpr int kBlock = kDgcThreads, kBlocksAtOnce = 4;
  struct Args {
    DgcApplyArgs a;
    DgcApplyScratch scratch;
  };
  using Shared = DgcApplyShared;

  __device__ static void run(const Args& args, Shared& shared) {
    use_if_sound(args.a, args.scratch, shared.check, [&] { apply(args.a, shared); });
  }

  __device__ static void apply(const DgcApplyArgs& a, Shared& shared) {
    const float lr = a.control->lr;
    for (int64_t block = blockIdx.x; block < a.table.blocks; block += gridDim.x) {
      // A copy, which nothing that is written can change.
      const DgcSegment s = a.table.segments[a.table.segment_of_block[block]];
      const int64_t local = block - s.first_block;
      if (DgcSharedSums::have_room(a, s, local, shared)) {
        apply_block(a, s, local, lr, DgcSharedSums(a, s, shared), shared);
      } else {
        apply_block(a, s, local, lr, DgcArenaSums(a.sum + s.offset + local * kDgcBlock), shared);
      }
    }
    step_dense(a, lr);
  }

  template <typename Sums>
  __device__ static void apply_block(const DgcApplyArgs& a, const DgcSegment& s, int64_t local, float lr,
                                     const Sums& sums, Shared& shared) {
    const int64_t first = local * kDgcBlock, at = s.offset + first;
    add_messages(a, s, local, sums, shared);
    if (only_sent_moves(a)) {
      step_sent(a, s, local, lr, sums, a.w + at, shared);
    } else {
      step_all(a, lr, static_cast<int>(smaller(kDgcBlock, s.numel - first)), sums, a.m + at, a.w + at);
      __syncthreads();  // the next block's sums take the place of these
    }
  }
};

struct DgcStep {
  static constexpr const char* kName = "dgc_step";
  static constexpr int kBlock = kDgcThreads, kBlocksAtOnce = 4;
  using Args = DgcStepArgs;
  struct Shared {};

  __device__ static void run(const Args& a, Shared&) {
    if (a.control->skip != 0 || a.control->fault.kind != WireFaultKind::none) return;
    const float lr = a.control->lr;
    for (int64_t block = blockIdx.x; block < a.table.blocks; block += gridDim.x) {
      const DgcSegment& s = a.table.segments[a.table.segment_of_block[block]];
      const int64_t first = (block - s.first_block) * kDgcBlock, at = s.offset + first;
      const int numel = static_cast<int>(smaller(kDgcBlock, s.numel - first));
      const DgcArenaSums sums(a.sum + at);
      if (only_sent_moves(a)) {
        step_summed(lr, numel, sums, a.w + at);
      } else {
        step_all(a, lr, numel, sums, a.m + at, a.w + at);
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
