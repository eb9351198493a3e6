// cuBLAS stores matrices by columns, so our row-major [r, c] is a c x r matrix to cuBLAS.
#include "kernels/cuda/product.h"

#include "kernels/cuda/libraries.h"

namespace dgc::cuda {

void Product::operator()(int64_t m, int64_t n, int64_t k, const BlasFactor& a, const BlasFactor& b, float keep,
                         const BlasResult& c) const {
  const float one = 1;
  const auto compute = type == DType::f32 && math == Fp32Math::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const auto operation = [](const BlasFactor& f) { return f.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  // cuBLAS computes c^T = b^T a^T: a row-major matrix that is read by columns is the transpose.
  check(cublasGemmEx(blas, operation(b), operation(a), to_int(n), to_int(m), to_int(k), &one, b.data, blas_type(type),
                     to_int(b.row_length), a.data, blas_type(type), to_int(a.row_length), &keep, c.data,
                     blas_type(c.type), to_int(c.row_length), compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

}  // namespace dgc::cuda
