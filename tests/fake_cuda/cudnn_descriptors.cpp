// cuDNN's handle, and descriptors of recurrent layers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/fake_cuda/dnn.h"

namespace dgc::fake_cuda {

void require_dnn(cudnnHandle_t handle) {
  if (machine().library_objects.count(handle) == 0) refuse(CUDNN_STATUS_NOT_INITIALIZED, "there is no such handle");
}

Element dnn_element(cudnnDataType_t type) {
  if (type == CUDNN_DATA_FLOAT) return Element::f32;
  if (type == CUDNN_DATA_HALF) return Element::f16;
  if (type == CUDNN_DATA_BFLOAT16) return Element::bf16;
  refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no data of this type");
}

}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

size_t cudnnGetVersion() { return static_cast<size_t>(machine().options.cudnn); }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_INTERNAL_ERROR ? "CUDNN_STATUS_INTERNAL_ERROR" : "another status of cuDNN";
}

void cudnnGetLastErrorString(char* message, size_t size) { std::snprintf(message, size, "%s", complaint().c_str()); }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const auto make = [&] {
    refuse_while_capturing(CUDNN_STATUS_ALLOC_FAILED, "a handle allocates memory, which a capture does not allow");
    if (std::getenv("CUBLAS_WORKSPACE_CONFIG") == nullptr) {
      refuse(CUDNN_STATUS_NOT_INITIALIZED, "recurrent layers would not give the same bits in every run");
    }
    *handle = new cudnnContext;
    machine().library_objects.insert(*handle);
  };
  return dnn_call("cudnnCreate", make, __builtin_return_address(0),
                  CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return destroy("cudnnDestroy", handle); }

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return dnn_call("cudnnSetStream", [&] {
    require_dnn(handle);
    handle->stream = stream;
  });
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return create("cudnnCreateTensorDescriptor", tensor);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return destroy("cudnnDestroyTensorDescriptor", tensor);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int rank,
                                         const int sizes[], const int strides[]) {
  return dnn_call("cudnnSetTensorNdDescriptor", [&] {
    if (rank < 3 || rank > CUDNN_DIM_MAX) refuse(CUDNN_STATUS_NOT_SUPPORTED, "tensors have 3 to 8 dimensions");
    dnn_element(type);
    for (int i = 0; i < rank; ++i) {
      if (sizes[i] < 1 || strides[i] < 1) refuse(CUDNN_STATUS_BAD_PARAM, "a size or a stride is not positive");
    }
    tensor->set = true;
    tensor->type = type;
    tensor->sizes.assign(sizes, sizes + rank);
    tensor->strides.assign(strides, strides + rank);
  });
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int most, cudnnDataType_t* type,
                                         int* rank, int sizes[], int strides[]) {
  return dnn_call("cudnnGetTensorNdDescriptor", [&] {
    require_set(tensor, "tensor descriptor");
    *type = tensor->type;
    *rank = static_cast<int>(tensor->sizes.size());
    std::copy_n(tensor->sizes.begin(), std::min(most, *rank), sizes);
    std::copy_n(tensor->strides.begin(), std::min(most, *rank), strides);
  });
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout) {
  return create("cudnnCreateDropoutDescriptor", dropout);
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
  return destroy("cudnnDestroyDropoutDescriptor", dropout);
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle, float p, void*, size_t,
                                        unsigned long long) {
  return dnn_call("cudnnSetDropoutDescriptor", [&] {
    require_dnn(handle);
    if (p != 0) refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake has no dropout");
    dropout->set = true;
  });
}
