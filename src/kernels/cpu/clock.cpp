#include <chrono>

#include "kernels/cpu/cpu_backend.h"

namespace dgc {

void CpuBackend::read_clock(uint64_t* nanoseconds) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  *nanoseconds = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void CpuBackend::add_overlap_time(const OverlapTimeArgs& args) {
  OverlapTotals& totals = *args.totals;
  ++totals.steps;
  for (int64_t i = 0; i < args.count; ++i) {
    const OverlapSpan& span = args.spans[i];
    totals.nanoseconds += span.until(span.to);
    totals.hidden += span.until(*args.waits_from);
  }
}

}  // namespace dgc
