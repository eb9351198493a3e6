#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

using cuda::Queue;

void CudaBackend::add(ConstView x, View y) {
  Queue queue(*this);
  cuda::add(queue, x, y);
}

void CudaBackend::activation_forward(Activation kind, ConstView x, View y) {
  Queue queue(*this);
  cuda::activation_forward(queue, kind, x, y);
}

void CudaBackend::activation_backward(Activation kind, ConstView y, ConstView dy, View dx) {
  Queue queue(*this);
  cuda::activation_backward(queue, kind, y, dy, dx);
}

void CudaBackend::convert(ConstView x, View y) {
  Queue queue(*this);
  cuda::convert(queue, x, y);
}

}  // namespace dgc
