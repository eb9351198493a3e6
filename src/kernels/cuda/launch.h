#pragma once

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <cstdint>

#include "tensor/device_cuda.h"

namespace dgc::cuda {

inline void check(cudaError_t error, const char* call) { check_cuda(error, call); }

// The stream and the size of a kernel's launch. All of our kernels have one-dimensional grids and blocks.
struct Launch {
  const char* name;  // what profilers and errors call it
  cudaStream_t stream;
  int64_t grid;       // number of blocks; 0 launches nothing
  int block;          // threads of a block
  size_t shared = 0;  // dynamic shared memory in bytes
};

struct NvtxRange {
  explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
  ~NvtxRange() { nvtxRangePop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

template <typename... Params, typename... Args>
void launch_with(const Launch& how, cudaLaunchAttribute* attribute, void (*kernel)(Params...), Args&&... args) {
  if (how.grid == 0) return;
  const NvtxRange range(how.name);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(how.grid));
  config.blockDim = dim3(static_cast<unsigned>(how.block));
  config.dynamicSmemBytes = how.shared;
  config.stream = how.stream;
  config.attrs = attribute;
  config.numAttrs = attribute != nullptr ? 1 : 0;
  // The call returns all that is wrong with the launch. cudaGetLastError() would also return what an earlier call that
  // nobody checked has left behind, such as one of a destructor, and this kernel would be blamed.
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Args&&>(args)...), how.name);
}

// Queues kernel<<<grid, block, shared, stream>>>(args...). Throws as check_cuda() does, with the kernel's name.
template <typename... Params, typename... Args>
void launch(const Launch& how, void (*kernel)(Params...), Args&&... args) {
  launch_with(how, nullptr, kernel, static_cast<Args&&>(args)...);
}

// Queues a kernel that calls grid_sync(). All of its blocks must be on the GPU at once, so `grid` must be at most
// cooperative_blocks().
template <typename... Params, typename... Args>
void launch_cooperative(const Launch& how, void (*kernel)(Params...), Args&&... args) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  launch_with(how, &cooperative, kernel, static_cast<Args&&>(args)...);
}

// Returns how many blocks of the kernel fit on the GPU at once. The call asks the driver, which is too slow for each
// step.
template <typename... Params>
int64_t cooperative_blocks(const CudaDevice& device, void (*kernel)(Params...), int block, size_t shared = 0) {
  int per_multiprocessor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, block, shared),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return int64_t{per_multiprocessor} * device.multiprocessors();
}

}  // namespace dgc::cuda
