#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "kernels/wire_codes.h"

// Packs what travels dense: some thousand elements or, with fp16, those of a whole model.
namespace dgc {
namespace {

// Calls body(place in the packed buffer, place in the arena).
template <typename Body>
void each_dense(const DgcDense& dense, const Body& body) {
  for (int32_t r = 0; r < dense.count; ++r) {
    const DgcRange& range = dense.ranges[r];
    for_chunks(range.numel, kElementwiseChunk, [&](int64_t at, int64_t size) {
      for (int64_t i = at; i < at + size; ++i) body(range.packed_at + i, range.offset + i);
    });
  }
}

}  // namespace

void CpuBackend::dgc_pack(const DgcPackArgs& args) {
  each_dense(args.dense, [&](int64_t packed, int64_t at) { args.packed[packed] = *args.scale * args.arena[at]; });
}

void CpuBackend::dgc_pack_half(const DgcPackHalfArgs& args) {
  if (args.control->skip != 0) return;
  each_dense(args.dense, [&](int64_t packed, int64_t at) {
    const float x = std::fma(*args.scale, args.arena[at], args.residual[at]);
    const uint32_t code = value_code(WireValues::fp16, x, 0);
    args.packed[packed] = static_cast<uint16_t>(code);
    args.residual[at] = wire_finite(x) ? x - value_of(WireValues::fp16, code, 0) : 0;
  });
}

void CpuBackend::dgc_sum_half(const DgcSumHalfArgs& args) {
  for_chunks(args.numel, kElementwiseChunk, [&](int64_t at, int64_t size) {
    for (int64_t i = at; i < at + size; ++i) {
      float sum = value_of(WireValues::fp16, args.packed[i], 0);
      for (int32_t worker = 1; worker < args.workers; ++worker) {
        sum += value_of(WireValues::fp16, args.packed[worker * args.numel + i], 0);
      }
      args.sum[i] = sum;
    }
  });
}

}  // namespace dgc
