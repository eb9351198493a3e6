// The functions of cuBLAS that are called here. Each loads the library when it is called first: a program that links
// cuBLAS loads it at every start, which takes 0.1 s and 100 MB for each command and each rank, with or without a GPU.
#include <cublas_v2.h>
#include <dlfcn.h>

#include <string>

#include "tensor/errors.h"

namespace {

void* cublas() {
  static void* const library = [] {
    const std::string name = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR);
    void* const found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr) {
      dgc::throw_user_error("a GPU needs cuBLAS, which does not load: {}; let LD_LIBRARY_PATH name its folder",
                            dlerror());
    }
    return found;
  }();
  return library;
}

// The address of the library's own function of that name.
void* of_cublas(const char* name) {
  void* const found = dlsym(cublas(), name);
  if (found == nullptr) dgc::throw_user_error("a GPU needs another version of cuBLAS: {}", dlerror());
  return found;
}

// The arguments are passed on as they came, so they have the types that cuBLAS's header declares.
template <typename Result, typename... Args>
Result call(void* function, Args... args) {
  return reinterpret_cast<Result (*)(Args...)>(function)(args...);
}

}  // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  static void* const function = of_cublas("cublasCreate_v2");
  return call<cublasStatus_t>(function, handle);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  static void* const function = of_cublas("cublasDestroy_v2");
  return call<cublasStatus_t>(function, handle);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  static void* const function = of_cublas("cublasSetStream_v2");
  return call<cublasStatus_t>(function, handle, stream);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  static void* const function = of_cublas("cublasSetWorkspace_v2");
  return call<cublasStatus_t>(function, handle, workspace, bytes);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  static void* const function = of_cublas("cublasSetMathMode");
  return call<cublasStatus_t>(function, handle, mode);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  static void* const function = of_cublas("cublasGemmEx");
  return call<cublasStatus_t>(function, handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
                              c_type, ldc, compute, algorithm);
}

const char* cublasGetStatusString(cublasStatus_t status) {
  static void* const function = of_cublas("cublasGetStatusString");
  return call<const char*>(function, status);
}
