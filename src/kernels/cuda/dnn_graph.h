#pragma once

#include <cudnn.h>

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

// cuDNN's graph API (cudnnBackend...): everything is a descriptor of some type, whose attributes are set, and which is
// then finalized. No call here needs a GPU but those that are given a handle: cuDNN answers for any GPU whose
// properties it is told.
namespace dgc::cuda {

class GraphDescriptor {
 public:
  // Throws InternalError where cuDNN does not know the type.
  explicit GraphDescriptor(cudnnBackendDescriptorType_t type);
  ~GraphDescriptor();
  GraphDescriptor(GraphDescriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  GraphDescriptor& operator=(GraphDescriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  cudnnBackendDescriptor_t handle() const { return handle_; }

  // Sets an attribute to one value or to several. Throws InternalError where cuDNN refuses.
  template <typename T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set_array(name, type_of(value), 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const GraphDescriptor& value) {
    set_array(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
  }
  template <typename T>
  void set_all(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set_array(name, type_of(values[0]), static_cast<int64_t>(values.size()), values.data());
  }
  void set_all(cudnnBackendAttributeName_t name, std::initializer_list<int64_t> values) {
    set_all(name, std::span<const int64_t>(values.begin(), values.size()));
  }
  void set_all(cudnnBackendAttributeName_t name, std::span<const GraphDescriptor> values);

  // False where cuDNN does not do what the attributes ask for, or not with these sizes or on this machine. Other
  // failures are thrown as InternalError.
  bool finalize();

  int64_t number(cudnnBackendAttributeName_t name) const;
  cudnnBackendKnobType_t knob(cudnnBackendAttributeName_t name) const;
  std::vector<cudnnBackendNumericalNote_t> notes(cudnnBackendAttributeName_t name) const;
  // The descriptors that an attribute consists of. The caller says their type.
  std::vector<GraphDescriptor> descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;

 private:
  static cudnnBackendAttributeType_t type_of(bool) { return CUDNN_TYPE_BOOLEAN; }
  static cudnnBackendAttributeType_t type_of(int64_t) { return CUDNN_TYPE_INT64; }
  static cudnnBackendAttributeType_t type_of(float) { return CUDNN_TYPE_FLOAT; }
  static cudnnBackendAttributeType_t type_of(char) { return CUDNN_TYPE_CHAR; }
  static cudnnBackendAttributeType_t type_of(void*) { return CUDNN_TYPE_VOID_PTR; }
  static cudnnBackendAttributeType_t type_of(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
  static cudnnBackendAttributeType_t type_of(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
  static cudnnBackendAttributeType_t type_of(cudnnConvolutionMode_t) { return CUDNN_TYPE_CONVOLUTION_MODE; }
  static cudnnBackendAttributeType_t type_of(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }
  static cudnnBackendAttributeType_t type_of(cudnnPointwiseMode_t) { return CUDNN_TYPE_POINTWISE_MODE; }

  void set_array(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  // Returns how many there are, and writes at most `most` of them.
  int64_t get_array(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                    void* values) const;

  cudnnBackendDescriptor_t handle_ = nullptr;
};

// What cuDNN must know about a GPU. Throws UserError where cuDNN is older than 9.8, the first to have this.
GraphDescriptor device_properties(cudnnHandle_t);

}  // namespace dgc::cuda
