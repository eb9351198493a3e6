#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dgc_scratch.h"
#include "kernels/cpu/simd.h"
#include "tensor/half.h"

// One task per block of a segment: all workers' entries of the block are added up in worker order, without atomics,
// while its part of the sum lies in the cache; then its weights take the step. With no weight decay only sent elements
// move.
namespace dgc {
namespace {

struct Entries {
  const uint16_t* offsets;
  const float* values32;  // one of the two is read
  const uint16_t* values16;
  uint32_t begin, end;
};

Entries entries_of(const std::byte* payload, const DgcSegment& s, int64_t block) {
  const auto* ends = reinterpret_cast<const uint32_t*>(payload + s.block_ends_at);
  return {reinterpret_cast<const uint16_t*>(payload + s.offsets_at),
          reinterpret_cast<const float*>(payload + s.values_at),
          reinterpret_cast<const uint16_t*>(payload + s.values_at), block == 0 ? 0 : ends[block - 1], ends[block]};
}

void add_entries(const Entries& e, WireValues values, float* sum) {
  if (values == WireValues::fp32) {
    for (uint32_t i = e.begin; i < e.end; ++i) sum[e.offsets[i]] += e.values32[i];
  } else {
    for (uint32_t i = e.begin; i < e.end; ++i) sum[e.offsets[i]] += half_to_float(e.values16[i]);
  }
}

// An element that several workers sent is met again with a sum of zero, which leaves its weight as it is.
void step_sent(const Entries& e, float lr, float* sum, float* w) {
  for (uint32_t i = e.begin; i < e.end; ++i) {
    const uint16_t at = e.offsets[i];
    w[at] = std::fma(-lr, sum[at], w[at]);
    sum[at] = 0;
  }
}

struct DenseStep {
  float lr, momentum, weight_decay;
  bool nesterov, momentum_correction;
};

template <bool nesterov, bool momentum_correction>
[[gnu::always_inline]] inline void step_loop(const DenseStep& a, float* __restrict__ sum, float* __restrict__ m,
                                             float* __restrict__ w, int64_t n) {
  const float lr = a.lr, momentum = a.momentum, weight_decay = a.weight_decay;
  for (int64_t i = 0; i < n; ++i) {
    const float d = momentum_correction ? weight_decay * w[i] : std::fma(weight_decay, w[i], sum[i]);
    m[i] = std::fma(momentum, m[i], d);
    const float decayed = nesterov ? std::fma(momentum, m[i], d) : m[i];
    w[i] = std::fma(-lr, momentum_correction ? sum[i] + decayed : decayed, w[i]);
    sum[i] = 0;
  }
}

DGC_MULTIVERSION void step_all(const DenseStep& a, float* sum, float* m, float* w, int64_t n) {
  if (a.momentum_correction) {
    a.nesterov ? step_loop<true, true>(a, sum, m, w, n) : step_loop<false, true>(a, sum, m, w, n);
  } else {
    a.nesterov ? step_loop<true, false>(a, sum, m, w, n) : step_loop<false, false>(a, sum, m, w, n);
  }
}

void apply_block(const DgcApplyArgs& args, const DgcSegment& s, int64_t block) {
  const int64_t at = s.offset + block * kDgcBlock;
  for (const std::byte* payload : args.payloads) {
    add_entries(entries_of(payload, s, block), args.values, args.sum + at);
  }
  if (args.momentum_correction && args.weight_decay == 0) {
    for (const std::byte* payload : args.payloads) {
      step_sent(entries_of(payload, s, block), args.lr, args.sum + at, args.w + at);
    }
    return;
  }
  const int64_t n = std::min(kDgcBlock, s.numel - block * kDgcBlock);
  step_all({args.lr, args.momentum, args.weight_decay, args.nesterov, args.momentum_correction}, args.sum + at,
           args.m + at, args.w + at, n);
}

}  // namespace

void CpuBackend::dgc_apply(const DgcApplyArgs& args) {
  std::vector<DgcChunk>& chunks = dgc_scratch_->chunks;
  chunks.clear();
  for (size_t i = 0; i < args.segments.size(); ++i) {
    for (int64_t b = 0; b < args.segments[i].blocks(); ++b) {
      chunks.push_back({static_cast<int32_t>(i), static_cast<int32_t>(b), 0, 0, 0});
    }
  }
  const auto count = static_cast<int64_t>(chunks.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
  for (int64_t c = 0; c < count; ++c) {
    const DgcChunk& chunk = chunks[static_cast<size_t>(c)];
    apply_block(args, args.segments[static_cast<size_t>(chunk.segment)], chunk.block);
  }
}

// Biases and BatchNorm's parameters: some thousand elements, not worth a parallel region.
void CpuBackend::dgc_pack(const DgcPackArgs& args) {
  for (const DgcRange& range : args.ranges) {
    const float* from = args.arena + range.offset;
    float* to = args.packed + range.packed_at;
    for (int64_t i = 0; i < range.numel; ++i) to[i] = args.scale * from[i];
  }
}

}  // namespace dgc
