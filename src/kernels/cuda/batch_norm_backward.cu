#include "kernels/cuda/batch_norm_backward.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::batch_norm_backward(const BatchNormArgs& args, ConstView x, ConstView y, ConstView scale,
                                      ConstView saved, View dy, View dx, View dscale, View dshift) {
  cuda::Queue queue(*this);
  cuda::batch_norm_backward(queue, args, x, y, scale, saved, dy, dx, dscale, dshift);
}

}  // namespace dgc
