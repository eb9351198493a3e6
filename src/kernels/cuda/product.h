#pragma once

#include <cublas_v2.h>

#include <cstdint>

#include "kernels/backend.h"

namespace dgc::cuda {

// A row-major matrix whose rows begin row_length elements apart, and whether its transpose is meant.
struct BlasFactor {
  const void* data;
  int64_t row_length;
  bool transposed = false;
};
struct BlasResult {
  void* data;
  DType type;  // that of the factors, or fp32
  int64_t row_length;
};

// Matrix products by cuBLAS, summed in fp32.
struct Product {
  cublasHandle_t blas;
  Fp32Math math;
  DType type;  // of both factors

  // c [m, n] = a [m, k] * b [k, n] + keep * c. With keep = 0 the old c does not matter.
  void operator()(int64_t m, int64_t n, int64_t k, const BlasFactor& a, const BlasFactor& b, float keep,
                  const BlasResult& c) const;
};

}  // namespace dgc::cuda
