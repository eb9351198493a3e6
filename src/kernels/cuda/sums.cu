#include "kernels/cuda/queue.h"
#include "kernels/cuda/sums.cuh"

namespace dgc {

void CudaBackend::sum_squares(ConstView x, double* out) {
  cuda::Queue queue(*this);
  cuda::sum_squares(queue, x, out);
}

void CudaBackend::ordered_sum(std::span<const float* const> x, float* out, int64_t n) {
  cuda::Queue queue(*this);
  cuda::ordered_sum(queue, x, out, n);
}

}  // namespace dgc
