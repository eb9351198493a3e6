// The devices that the fake has, as fake_cuda.h's options describe them.
#include <cstdio>
#include <cstring>

#include "tests/fake_cuda/runtime.h"

namespace dgc::fake_cuda {
namespace {

void require_index(int index) {
  if (index < 0 || index >= machine().options.devices) refuse(cudaErrorInvalidDevice, "there is no device {}", index);
}

int major_of(int index) {
  const Options& options = machine().options;
  return index < options.old_devices ? 7 : options.major;
}

}  // namespace
}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().options.driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  return runtime_call("cudaGetDeviceCount", WhileCapturing::allowed, [&] {
    *count = 0;
    if (machine().options.driver < CUDART_VERSION / 1000 * 1000) {
      refuse(cudaErrorInsufficientDriver, "the driver is too old, or there is none");
    }
    if (machine().options.devices == 0) refuse(cudaErrorNoDevice, "there is no device");
    *count = machine().options.devices;
  });
}

cudaError_t cudaSetDevice(int index) {
  return runtime_call("cudaSetDevice", WhileCapturing::allowed, [&] {
    require_index(index);
    current_device() = index;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int index) {
  return runtime_call("cudaDeviceGetAttribute", WhileCapturing::allowed, [&] {
    require_index(index);
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount:
        *value = machine().options.multiprocessors;
        return;
      case cudaDevAttrComputeCapabilityMajor:
        *value = major_of(index);
        return;
      default:
        refuse(cudaErrorInvalidValue, "the fake does not know attribute {}", static_cast<int>(attribute));
    }
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  return runtime_call("cudaGetDeviceProperties", WhileCapturing::allowed, [&] {
    require_index(index);
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "Fake H100");
    properties->major = major_of(index);
    properties->totalGlobalMem = machine().options.memory;
    properties->multiProcessorCount = machine().options.multiprocessors;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* address, int size, int index) {
  return runtime_call("cudaDeviceGetPCIBusId", WhileCapturing::allowed, [&] {
    require_index(index);
    std::snprintf(address, static_cast<size_t>(size), "0000:%02x:00.0", index);
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return runtime_call("cudaDeviceGetStreamPriorityRange", WhileCapturing::allowed, [&] {
    *least = 0;
    *greatest = kHighestPriority;
  });
}
