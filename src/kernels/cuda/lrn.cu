#include "kernels/cuda/lrn.cuh"

#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::lrn_forward(const LrnArgs& args, ConstView x, View y) {
  cuda::Queue queue(*this);
  cuda::lrn_forward(queue, args, x, y);
}

void CudaBackend::lrn_backward(const LrnArgs& args, ConstView x, ConstView dy, View dx) {
  cuda::Queue queue(*this);
  cuda::lrn_backward(queue, args, x, dy, dx);
}

}  // namespace dgc
