#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::dropout_forward(const DropoutArgs& args, ConstView x, View y) {
  cuda::Queue queue(*this);
  cuda::dropout_forward(queue, args, x, y);
}

}  // namespace dgc
