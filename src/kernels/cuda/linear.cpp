// Matrix products by cuBLAS, summed in fp32. cuBLAS stores matrices by columns, so our row-major [r, c] is a c x r
// matrix to cuBLAS. With 16-bit activations the weights are rounded to the activations' type first; gradients of
// weights are fp32 throughout.
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/libraries.h"
#include "kernels/cuda/weights.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

using cuda::to_int;

// A row-major matrix, and whether its transpose is meant.
struct BlasFactor {
  const void* data;
  int64_t row_length;
  bool transposed = false;
};

struct Product {
  cublasHandle_t blas;
  Fp32Math math;
  DType type;  // of both factors

  // c [m, n] = a [m, k] * b [k, n] + keep * c, row-major.
  void operator()(int64_t m, int64_t n, int64_t k, const BlasFactor& a, const BlasFactor& b, float keep, View c) const {
    const float one = 1;
    const auto compute =
        type == DType::f32 && math == Fp32Math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const auto operation = [](const BlasFactor& f) { return f.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    // cuBLAS computes c^T = b^T a^T: a row-major matrix that is read by columns is the transpose.
    cuda::check(
        cublasGemmEx(blas, operation(b), operation(a), to_int(n), to_int(m), to_int(k), &one, b.data,
                     cuda::blas_type(type), to_int(b.row_length), a.data, cuda::blas_type(type), to_int(a.row_length),
                     &keep, c.data, cuda::blas_type(c.dtype), to_int(n), compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }
};

}  // namespace

// Returns the weights in the type of the activations: the weights themselves in fp32, else a copy in the workspace.
const void* CudaBackend::weights_as(DType type, ConstView w) {
  if (type == DType::f32) return w.data;
  const View copy{workspace(static_cast<size_t>(w.numel()) * dtype_size(type)), w.shape, type};
  convert(w, copy);
  return copy.data;
}

void CudaBackend::linear_forward(const LinearArgs& args, ConstView x, ConstView w, ConstView b, View y) {
  const Product product{libraries_->blas(), math_, x.dtype};
  const BlasFactor weights{weights_as(x.dtype, w), args.in, true};
  product(args.batch, args.out, args.in, {x.data, args.in}, weights, 0, y);
  if (b) cuda::add_bias(*this, b, y);
}

void CudaBackend::linear_backward(const LinearArgs& args, ConstView x, ConstView w, ConstView dy, View dx, View dw,
                                  View db) {
  const Product product{libraries_->blas(), math_, dy.dtype};
  if (dx) {
    const BlasFactor weights{weights_as(dy.dtype, w), args.in};
    product(args.batch, args.in, args.out, {dy.data, args.out}, weights, 0, dx);
  }
  if (dw) product(args.out, args.in, args.batch, {dy.data, args.out, true}, {x.data, args.in}, 1, dw);
  if (db) cuda::add_column_sums(*this, dy, db);
}

}  // namespace dgc
