#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dgc_scratch.h"
#include "kernels/cpu/sgd.h"
#include "kernels/cpu/wire_message.h"
#include "tensor/simd.h"

// There is one task per block of a segment. It adds up all workers' entries of the block in worker order, without
// atomics, while the block's part of the sum lies in the cache; then the block's weights take the step. Without weight
// decay only sent elements move. dgc_step takes the same step by a sum that came as dense numbers.
namespace dgc {
namespace {

void add_entries(const BlockEntries& e, float* sum) {
  for (uint32_t i = e.begin; i < e.end; ++i) sum[e.offsets[i]] += e.values[i];
}

// An element that several workers sent is visited several times; after the first visit its sum is zero, which leaves
// the weight as it is.
void step_sent(const BlockEntries& e, float lr, float* sum, float* w) {
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

DGC_MULTIVERSION void step_plain(float lr, float* __restrict__ sum, float* __restrict__ w, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    w[i] = std::fma(-lr, sum[i], w[i]);
    sum[i] = 0;
  }
}

// Then an element with a sum of zero stays where it is, and there is no momentum.
bool only_sent_moves(const DgcStepArgs& args) { return args.momentum_correction && args.weight_decay == 0; }

void step_block(const DgcStepArgs& args, const DgcSegment& s, int64_t block) {
  const int64_t at = s.offset + block * kDgcBlock;
  const int64_t n = std::min(kDgcBlock, s.numel - block * kDgcBlock);
  const float lr = args.control->lr;
  if (only_sent_moves(args)) {
    step_plain(lr, args.sum + at, args.w + at, n);
  } else {
    step_all({lr, args.momentum, args.weight_decay, args.nesterov, args.momentum_correction}, args.sum + at,
             args.m + at, args.w + at, n);
  }
}

// Biases and BatchNorm's parameters have some thousand elements, which are not worth a parallel region.
void step_dense(const DgcStepArgs& args) {
  const SgdRule rule{args.control->lr, args.momentum, args.weight_decay, 1, args.nesterov};
  for (int32_t i = 0; i < args.dense.count; ++i) {
    const DgcRange& range = args.dense.ranges[i];
    float* const m = args.m == nullptr ? nullptr : args.m + range.offset;
    sgd_chunk(rule, args.dense_sum + range.packed_at, range.numel, m, args.w + range.offset);
  }
}

void apply_block(const DgcApplyArgs& args, const DgcSegment& s, int64_t block) {
  const int64_t at = s.offset + block * kDgcBlock;
  const float lr = args.control->lr;
  for (int32_t worker = 0; worker < args.workers; ++worker) {
    add_entries(entries_of(message_of(args, worker), s, block), args.sum + at);
  }
  if (!only_sent_moves(args)) return step_block(args, s, block);
  for (int32_t worker = 0; worker < args.workers; ++worker) {
    step_sent(entries_of(message_of(args, worker), s, block), lr, args.sum + at, args.w + at);
  }
}

// Calls body(segment, block) for every block of every segment, in parallel. `chunks` is scratch.
template <typename Body>
void each_block(const DgcTable& table, std::vector<DgcChunk>& chunks, int threads, const Body& body) {
  chunks.clear();
  for (int32_t i = 0; i < table.count; ++i) {
    for (int64_t b = 0; b < table.segments[i].blocks(); ++b) chunks.push_back({i, static_cast<int32_t>(b), 0, 0, 0});
  }
  const auto count = static_cast<int64_t>(chunks.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (int64_t c = 0; c < count; ++c) {
    const DgcChunk& chunk = chunks[static_cast<size_t>(c)];
    body(table.segments[chunk.segment], chunk.block);
  }
}

}  // namespace

void CpuBackend::dgc_apply(const DgcApplyArgs& args) {
  if (!may_apply(args)) return;
  each_block(args.table, dgc_scratch_->chunks, threads_,
             [&](const DgcSegment& s, int64_t block) { apply_block(args, s, block); });
  step_dense(args);
}

void CpuBackend::dgc_step(const DgcStepArgs& args) {
  if (nothing_to_do(*args.control)) return;
  each_block(args.table, dgc_scratch_->chunks, threads_,
             [&](const DgcSegment& s, int64_t block) { step_block(args, s, block); });
  step_dense(args);
}

}  // namespace dgc
