#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/wire_message.h"

namespace dgc {

void CpuBackend::dgc_scatter(const DgcScatterArgs& args) {
  if (args.control->skip != 0) return;
  for (int32_t i = 0; i < args.table.count; ++i) {
    const DgcSegment& s = args.table.segments[i];
    for_chunks(s.numel, kDgcBlock, [&](int64_t at, int64_t size) {
      float* dense = args.dense + s.offset + at;
      std::fill_n(dense, size, 0.f);
      const BlockEntries e = entries_of(args.message, s, at / kDgcBlock);
      for (uint32_t entry = e.begin; entry < e.end; ++entry) dense[e.offsets[entry]] += e.values[entry];
    });
  }
}

}  // namespace dgc
