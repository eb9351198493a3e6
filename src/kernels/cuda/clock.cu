#include "kernels/cuda/clock.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::read_clock(uint64_t* nanoseconds) {
  cuda::Queue queue(*this);
  cuda::read_clock(queue, nanoseconds);
}

void CudaBackend::add_overlap_time(const OverlapTimeArgs& args) {
  cuda::Queue queue(*this);
  cuda::add_overlap_time(queue, args);
}

}  // namespace dgc
