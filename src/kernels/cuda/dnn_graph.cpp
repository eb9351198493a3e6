#include "kernels/cuda/dnn_graph.h"

#include <algorithm>

#include "kernels/cuda/libraries.h"
#include "tensor/errors.h"

namespace dgc::cuda {
namespace {

constexpr size_t kFirstWithProperties = 90800;  // as cudnnGetVersion() counts

// Whether cuDNN says that it cannot do this one thing: what is asked for does not go, an engine that is compiled when
// it is first used does not compile here, or the library that has the engine is not installed.
bool is_refusal(cudnnStatus_t answer) {
  return (answer >= CUDNN_STATUS_BAD_PARAM && answer < CUDNN_STATUS_INTERNAL_ERROR) ||
         answer == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED || answer == CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED;
}

}  // namespace

GraphDescriptor::GraphDescriptor(cudnnBackendDescriptorType_t type) {
  check(cudnnBackendCreateDescriptor(type, &handle_), "cudnnBackendCreateDescriptor");
}

GraphDescriptor::~GraphDescriptor() {
  if (handle_ != nullptr) cudnnBackendDestroyDescriptor(handle_);
}

void GraphDescriptor::set_array(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                                const void* values) {
  check(cudnnBackendSetAttribute(handle_, name, type, count, values), "cudnnBackendSetAttribute");
}

void GraphDescriptor::set_all(cudnnBackendAttributeName_t name, std::span<const GraphDescriptor> values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const GraphDescriptor& value : values) handles.push_back(value.handle_);
  set_array(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(handles), handles.data());
}

int64_t GraphDescriptor::get_array(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                                   void* values) const {
  int64_t count = 0;
  check(cudnnBackendGetAttribute(handle_, name, type, most, &count, values), "cudnnBackendGetAttribute");
  return count;
}

bool GraphDescriptor::finalize() {
  const cudnnStatus_t answer = cudnnBackendFinalize(handle_);
  if (!is_refusal(answer)) check(answer, "cudnnBackendFinalize");
  return answer == CUDNN_STATUS_SUCCESS;
}

int64_t GraphDescriptor::number(cudnnBackendAttributeName_t name) const {
  int64_t value = 0;
  get_array(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

cudnnBackendKnobType_t GraphDescriptor::knob(cudnnBackendAttributeName_t name) const {
  cudnnBackendKnobType_t value{};
  get_array(name, CUDNN_TYPE_KNOB_TYPE, 1, &value);
  return value;
}

std::vector<cudnnBackendNumericalNote_t> GraphDescriptor::notes(cudnnBackendAttributeName_t name) const {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const int64_t count = get_array(name, CUDNN_TYPE_NUMERICAL_NOTE, std::ssize(notes), notes.data());
  notes.resize(std::min(notes.size(), static_cast<size_t>(count)));
  return notes;
}

std::vector<GraphDescriptor> GraphDescriptor::descriptors(cudnnBackendAttributeName_t name,
                                                          cudnnBackendDescriptorType_t type) const {
  const int64_t most = get_array(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<GraphDescriptor> made;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < most; ++i) handles.push_back(made.emplace_back(type).handle());
  if (most == 0) return made;
  // cuDNN drops what it cannot do after all, so there may be fewer now.
  const int64_t count = get_array(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, handles.data());
  made.erase(made.begin() + std::min(most, count), made.end());
  return made;
}

GraphDescriptor device_properties(cudnnHandle_t dnn) {
  if (cudnnGetVersion() < kFirstWithProperties) {
    throw_user_error("convolutions need cuDNN 9.8 or newer, and this is cuDNN {}; install a newer one",
                     cudnn_version());
  }
  GraphDescriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_HANDLE, dnn);
  DGC_CHECK(properties.finalize(), "cuDNN cannot describe its own GPU");
  return properties;
}

}  // namespace dgc::cuda
