#pragma once

#include <cudnn.h>

#include <array>
#include <vector>

#include "tests/fake_cuda/elements.h"
#include "tests/fake_cuda/runtime.h"

// What lies behind cuDNN's handles and descriptors.

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

struct cudnnTensorStruct {
  bool set = false;
  cudnnDataType_t type{};
  std::vector<int> sizes, strides;
};

struct cudnnDropoutStruct {
  bool set = false;
};

namespace dgc::fake_cuda {

inline cudnnStatus_t dnn_call(const char* name, const std::function<void()>& body,
                              const void* from = __builtin_return_address(0),
                              cudnnStatus_t failure = CUDNN_STATUS_INTERNAL_ERROR) {
  return static_cast<cudnnStatus_t>(library_call(name, failure, body, from));
}

void require_dnn(cudnnHandle_t);
Element dnn_element(cudnnDataType_t);

// A descriptor of any kind that has been created and, where it can be set, set.
template <typename Descriptor>
Descriptor* require_set(Descriptor* descriptor, const char* what) {
  if (machine().library_objects.count(descriptor) == 0) refuse(CUDNN_STATUS_BAD_PARAM, "there is no such {}", what);
  if (!descriptor->set) refuse(CUDNN_STATUS_BAD_PARAM, "the {} has not been set", what);
  return descriptor;
}

template <typename Descriptor>
cudnnStatus_t create(const char* name, Descriptor** descriptor, const void* from = __builtin_return_address(0)) {
  const auto make = [&] {
    *descriptor = new Descriptor;
    machine().library_objects.insert(*descriptor);
  };
  return dnn_call(name, make, from);
}

template <typename Descriptor>
cudnnStatus_t destroy(const char* name, Descriptor* descriptor, const void* from = __builtin_return_address(0)) {
  const std::lock_guard lock(machine().mutex);
  const bool fails = machine().fails_now(name, from);
  if (descriptor == nullptr) return CUDNN_STATUS_SUCCESS;
  if (machine().library_objects.erase(descriptor) == 0) return CUDNN_STATUS_BAD_PARAM;
  delete descriptor;
  return fails ? CUDNN_STATUS_INTERNAL_ERROR : CUDNN_STATUS_SUCCESS;
}

}  // namespace dgc::fake_cuda
