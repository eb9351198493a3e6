#pragma once

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// What a kernel body may use besides CUDA's own names. Bodies take their shared memory as a struct by reference and
// include this file. The tests put tests/emulation before src on the include path, so that the same line finds an
// emulation there, and the same bodies run without a GPU.
namespace dgc::cuda {

// Waits for all threads of all blocks. Only kernels that are launched cooperatively may call it.
__device__ __forceinline__ void grid_sync() { cooperative_groups::this_grid().sync(); }

// Reads the GPU's clock, which all of its kernels share. On some GPUs it advances in steps of a microsecond.
__device__ __forceinline__ uint64_t clock_nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

using f16 = __half;
using bf16 = __nv_bfloat16;

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(f16 value) { return __half2float(value); }
__device__ __forceinline__ float to_float(bf16 value) { return __bfloat162float(value); }

template <typename T>
__device__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ f16 from_float<f16>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __forceinline__ bf16 from_float<bf16>(float value) {
  return __float2bfloat16_rn(value);
}

}  // namespace dgc::cuda
