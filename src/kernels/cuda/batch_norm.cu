#include "kernels/cuda/batch_norm.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

size_t CudaBackend::batch_norm_saved_bytes(const BatchNormArgs& args) { return cuda::batch_norm_saved_bytes(args); }

void CudaBackend::batch_norm_forward(const BatchNormArgs& args, ConstView x, ConstView residual, ConstView scale,
                                     ConstView shift, View running_mean, View running_var, View y, View saved) {
  cuda::Queue queue(*this);
  cuda::batch_norm_forward(queue, args, x, residual, scale, shift, running_mean, running_var, y, saved);
}

void CudaBackend::batch_norm_inference(const BatchNormArgs& args, ConstView x, ConstView residual, ConstView scale,
                                       ConstView shift, ConstView mean, ConstView var, View y) {
  cuda::Queue queue(*this);
  cuda::batch_norm_inference(queue, args, x, residual, scale, shift, mean, var, y);
}

}  // namespace dgc
