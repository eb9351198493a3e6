#pragma once

// In the place of tests/emulation/kernels/cuda/names.h: CUDA's own header has the vector types, and makes nothing of
// __device__ and its like where g++ compiles.
#include <cuda_runtime.h>

#undef __forceinline__
#define __forceinline__ inline
