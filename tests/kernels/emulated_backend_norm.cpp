#include "kernels/cuda/batch_norm.cuh"
#include "kernels/cuda/batch_norm_backward.cuh"
#include "tests/kernels/emulated_backend.h"

namespace dgc {

size_t EmulatedBackend::batch_norm_saved_bytes(const BatchNormArgs& args) { return cuda::batch_norm_saved_bytes(args); }

void EmulatedBackend::batch_norm_forward(const BatchNormArgs& args, ConstView x, ConstView residual, ConstView scale,
                                         ConstView shift, View running_mean, View running_var, View y, View saved) {
  cuda::batch_norm_forward(queue_, args, x, residual, scale, shift, running_mean, running_var, y, saved);
}

void EmulatedBackend::batch_norm_inference(const BatchNormArgs& args, ConstView x, ConstView residual, ConstView scale,
                                           ConstView shift, ConstView mean, ConstView var, View y) {
  cuda::batch_norm_inference(queue_, args, x, residual, scale, shift, mean, var, y);
}

void EmulatedBackend::batch_norm_backward(const BatchNormArgs& args, ConstView x, ConstView y, ConstView scale,
                                          ConstView saved, View dy, View dx, View dscale, View dshift) {
  cuda::batch_norm_backward(queue_, args, x, y, scale, saved, dy, dx, dscale, dshift);
}

}  // namespace dgc
