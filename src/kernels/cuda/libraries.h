#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include <memory>

#include "kernels/backend.h"
#include "tensor/device_cuda.h"
#include "tensor/errors.h"
#include "tensor/view.h"

namespace dgc::cuda {

// A library of NVIDIA's has refused or failed a call, which the error names.
struct LibraryError : InternalError {
  using InternalError::InternalError;
};
// These throw LibraryError unless the status is success, and UserError where the GPU has no memory left.
void check(cudnnStatus_t status, const char* call);
void check(cublasStatus_t status, const char* call);

// A descriptor of cuDNN's, which lives as long as its owner.
template <typename Handle, cudnnStatus_t (*create)(Handle*), cudnnStatus_t (*destroy)(Handle)>
class Descriptor {
 public:
  Descriptor() { check(create(&handle_), "cudnnCreate...Descriptor"); }
  ~Descriptor() { destroy(handle_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator Handle() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};
using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using DropoutDescriptor =
    Descriptor<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor>;
using RnnDescriptor = Descriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using RnnDataDescriptor =
    Descriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor>;

// cuDNN and cuBLAS on the device's stream. Each library is set up when it is first used, because that takes a good part
// of a second, and memory.
class Libraries {
 public:
  explicit Libraries(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}

  // Where the set-up fails half way, nothing of it is kept, and the next call begins anew.
  cudnnHandle_t dnn();
  cublasHandle_t blas();

 private:
  struct Destroy {
    void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
    void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  };

  std::shared_ptr<CudaDevice> device_;
  Buffer blas_workspace_;
  std::unique_ptr<cudnnContext, Destroy> dnn_;
  std::unique_ptr<cublasContext, Destroy> blas_;
};

// A size as the libraries take it. Throws InternalError where it does not fit.
int to_int(int64_t size);
// A part of a workspace in bytes, rounded up so that the next part is aligned as an allocation of its own would be.
constexpr size_t aligned_bytes(size_t bytes) { return (bytes + 255) / 256 * 256; }

std::string cudnn_version();  // "9.19.0"
cudnnDataType_t dnn_type(DType);
cudnnMathType_t math_type(DType, Fp32Math);  // of recurrent layers
cudaDataType_t blas_type(DType);

}  // namespace dgc::cuda
