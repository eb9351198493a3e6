#include "kernels/cuda/libraries.h"

#include <cstdlib>
#include <limits>
#include <mutex>
#include <utility>

#include "tensor/errors.h"

namespace dgc::cuda {
namespace {

// The size that cuBLAS itself allocates on the largest GPUs. A workspace of ours is the same memory in every call, so
// that a recorded step finds it where it was.
constexpr size_t kBlasWorkspace = size_t{32} << 20;

// cuDNN's LSTM runs products on streams of its own. With cuBLAS's usual pool of workspaces there, results may differ in
// the last bits from run to run. NVIDIA's remedy is a pool of fixed size, which this variable asks for.
void ask_for_same_bits() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2", 0); });
}

}  // namespace

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) throw_gpu_is_full(call);
  char details[512] = "";
  cudnnGetLastErrorString(details, sizeof details);
  throw LibraryError(fmt::format("cuDNN: {}: {} {}", call, cudnnGetErrorString(status), details));
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw_gpu_is_full(call);
  throw LibraryError(fmt::format("cuBLAS: {}: {}", call, cublasGetStatusString(status)));
}

cudnnHandle_t Libraries::dnn() {
  if (dnn_ == nullptr) {
    ask_for_same_bits();
    cudnnHandle_t handle = nullptr;
    check(cudnnCreate(&handle), "cudnnCreate");
    decltype(dnn_) made(handle);
    check(cudnnSetStream(handle, device_->stream()), "cudnnSetStream");
    dnn_ = std::move(made);
  }
  return dnn_.get();
}

cublasHandle_t Libraries::blas() {
  if (blas_ == nullptr) {
    cublasHandle_t handle = nullptr;
    check(cublasCreate(&handle), "cublasCreate");
    decltype(blas_) made(handle);
    check(cublasSetStream(handle, device_->stream()), "cublasSetStream");
    blas_workspace_ = Buffer(device_, kBlasWorkspace, MemoryUse::scratch);
    check(cublasSetWorkspace(handle, blas_workspace_.data(), kBlasWorkspace), "cublasSetWorkspace");
    // 16-bit products are summed in fp32 throughout, also where the sums of several blocks are joined.
    const auto mode = static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    check(cublasSetMathMode(handle, mode), "cublasSetMathMode");
    blas_ = std::move(made);
  }
  return blas_.get();
}

int to_int(int64_t size) {
  DGC_CHECK(size >= 0 && size <= std::numeric_limits<int>::max(), "a size that cuDNN and cuBLAS cannot count");
  return static_cast<int>(size);
}

std::string cudnn_version() {
  const size_t version = cudnnGetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

cudnnDataType_t dnn_type(DType type) {
  DGC_CHECK(type != DType::i32, "cuDNN is for floating-point activations here");
  return type == DType::f16 ? CUDNN_DATA_HALF : type == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

cudnnMathType_t math_type(DType type, Fp32Math math) {
  if (type != DType::f32) return CUDNN_TENSOR_OP_MATH;
  return math == Fp32Math::exact ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;  // the default rounds factors to TF32
}

cudaDataType_t blas_type(DType type) {
  DGC_CHECK(type != DType::i32, "cuBLAS is for floating-point activations here");
  return type == DType::f16 ? CUDA_R_16F : type == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

}  // namespace dgc::cuda
