#include <cublas_v2.h>

#include <catch.hpp>
#include <string>

// The library itself, which needs no GPU to refuse a call: so each function that src/kernels/cuda/cublas.cpp has is
// found.
TEST_CASE("cuBLAS is loaded when it is called first, and has each function that is called") {
  CHECK_FALSE(std::string(cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)).empty());
  CHECK(cublasSetStream(nullptr, nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSetWorkspace(nullptr, nullptr, 0) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSetMathMode(nullptr, CUBLAS_DEFAULT_MATH) == CUBLAS_STATUS_NOT_INITIALIZED);
  const float one = 1;
  CHECK(cublasGemmEx(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, nullptr, CUDA_R_32F, 1, nullptr, CUDA_R_32F, 1,
                     &one, nullptr, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_INITIALIZED);
  cublasHandle_t handle = nullptr;
  if (cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS) {  // there is a GPU
    CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  } else {
    CHECK(cublasDestroy(nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  }
}
