// Measures on the GPU how long lanes worked beside the main stream, because a recorded step runs no host code that
// could read events.
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

struct ReadClock {
  static constexpr const char* kName = "read_clock";
  static constexpr int kBlock = 1;
  struct Args {
    uint64_t* nanoseconds;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) { *a.nanoseconds = clock_nanoseconds(); }
};

// One warp is enough, because there is only one span per bucket and worker.
struct AddOverlapTime {
  static constexpr const char* kName = "add_overlap_time";
  static constexpr int kBlock = 32;
  using Args = OverlapTimeArgs;
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const uint64_t waits_from = *a.waits_from;
    uint64_t nanoseconds = 0, hidden = 0;
    for (int64_t i = threadIdx.x; i < a.count; i += kBlock) {
      const OverlapSpan span = a.spans[i];
      nanoseconds += span.until(span.to);
      hidden += span.until(waits_from);
    }
    for (int distance = kBlock / 2; distance > 0; distance /= 2) {
      nanoseconds += __shfl_down_sync(0xffffffffu, nanoseconds, static_cast<unsigned>(distance));
      hidden += __shfl_down_sync(0xffffffffu, hidden, static_cast<unsigned>(distance));
    }
    if (threadIdx.x != 0) return;
    ++a.totals->steps;
    a.totals->nanoseconds += nanoseconds;
    a.totals->hidden += hidden;
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::read_clock(uint64_t* nanoseconds) { Queue(*this).run<ReadClock>(1, {nanoseconds}); }

void KernelBackend::add_overlap_time(const OverlapTimeArgs& args) { Queue(*this).run<AddOverlapTime>(1, args); }

}  // namespace dgc
