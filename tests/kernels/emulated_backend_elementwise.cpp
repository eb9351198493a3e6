#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/sgd.cuh"
#include "kernels/cuda/sums.cuh"
#include "tests/kernels/emulated_backend.h"

namespace dgc {

void EmulatedBackend::add(ConstView x, View y) { cuda::add(queue_, x, y); }

void EmulatedBackend::activation_forward(Activation kind, ConstView x, View y) {
  cuda::activation_forward(queue_, kind, x, y);
}

void EmulatedBackend::activation_backward(Activation kind, ConstView y, ConstView dy, View dx) {
  cuda::activation_backward(queue_, kind, y, dy, dx);
}

void EmulatedBackend::convert(ConstView x, View y) { cuda::convert(queue_, x, y); }

void EmulatedBackend::dropout_forward(const DropoutArgs& args, ConstView x, View y) {
  cuda::dropout_forward(queue_, args, x, y);
}

void EmulatedBackend::sgd_step(const SgdArgs& args, ConstView g, View m, View w) {
  cuda::sgd_step(queue_, args, g, m, w);
}

void EmulatedBackend::sum_squares(ConstView x, double* out) { cuda::sum_squares(queue_, x, out); }

void EmulatedBackend::ordered_sum(std::span<const float* const> x, float* out, int64_t n) {
  cuda::ordered_sum(queue_, x, out, n);
}

}  // namespace dgc
