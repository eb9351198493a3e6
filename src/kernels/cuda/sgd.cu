#include "kernels/cuda/queue.h"
#include "kernels/cuda/sgd.cuh"

namespace dgc {

void CudaBackend::sgd_step(const SgdArgs& args, ConstView g, View m, View w) {
  cuda::Queue queue(*this);
  cuda::sgd_step(queue, args, g, m, w);
}

}  // namespace dgc
