#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dgc_scratch.h"
#include "kernels/cpu/sgd.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/wire_message.h"
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

const std::byte* payload_of(const DgcApplyArgs& args, int32_t worker) {
  return args.messages + static_cast<uint64_t>(worker) * message_bytes(args.header) + kWireHeaderBytes;
}

void apply_block(const DgcApplyArgs& args, const DgcSegment& s, int64_t block) {
  const int64_t at = s.offset + block * kDgcBlock;
  const float lr = args.control->lr;
  for (int32_t worker = 0; worker < args.workers; ++worker) {
    add_entries(entries_of(payload_of(args, worker), s, block), static_cast<WireValues>(args.header.values),
                args.sum + at);
  }
  if (args.momentum_correction && args.weight_decay == 0) {
    for (int32_t worker = 0; worker < args.workers; ++worker) {
      step_sent(entries_of(payload_of(args, worker), s, block), lr, args.sum + at, args.w + at);
    }
    return;
  }
  const int64_t n = std::min(kDgcBlock, s.numel - block * kDgcBlock);
  step_all({lr, args.momentum, args.weight_decay, args.nesterov, args.momentum_correction}, args.sum + at, args.m + at,
           args.w + at, n);
}

WireFault first_fault(const DgcApplyArgs& args) {
  WireHeader want = args.header;
  for (int32_t worker = 0; worker < args.workers; ++worker) {
    want.worker = static_cast<uint32_t>(worker);
    const std::byte* message = payload_of(args, worker) - kWireHeaderBytes;
    const WireFault fault = check_message(message, want, args.control->step, args.table);
    if (fault.kind != WireFaultKind::none) return fault;
  }
  return {};
}

}  // namespace

void CpuBackend::dgc_apply(const DgcApplyArgs& args) {
  StepControl& control = *args.control;
  if (control.skip != 0 || control.fault.kind != WireFaultKind::none) return;
  control.fault = first_fault(args);
  if (control.fault.kind != WireFaultKind::none) return;

  std::vector<DgcChunk>& chunks = dgc_scratch_->chunks;
  chunks.clear();
  for (int32_t i = 0; i < args.table.count; ++i) {
    for (int64_t b = 0; b < args.table.segments[i].blocks(); ++b) {
      chunks.push_back({i, static_cast<int32_t>(b), 0, 0, 0});
    }
  }
  const auto count = static_cast<int64_t>(chunks.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
  for (int64_t c = 0; c < count; ++c) {
    const DgcChunk& chunk = chunks[static_cast<size_t>(c)];
    apply_block(args, args.table.segments[chunk.segment], chunk.block);
  }

  // Biases and BatchNorm's parameters: some thousand elements, not worth a parallel region.
  const SgdRule rule{control.lr, args.momentum, args.weight_decay, 1, args.nesterov};
  for (int32_t i = 0; i < args.dense.count; ++i) {
    const DgcRange& range = args.dense.ranges[i];
    sgd_chunk(rule, args.dense_sum + range.packed_at, range.numel, args.m + range.offset, args.w + range.offset);
  }
}

void CpuBackend::dgc_pack(const DgcPackArgs& args) {
  for (int32_t r = 0; r < args.dense.count; ++r) {
    const DgcRange& range = args.dense.ranges[r];
    const float* from = args.arena + range.offset;
    float* to = args.packed + range.packed_at;
    for (int64_t i = 0; i < range.numel; ++i) to[i] = *args.scale * from[i];
  }
}

}  // namespace dgc
