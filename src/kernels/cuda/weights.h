#pragma once

#include "kernels/cuda/cuda_backend.h"

namespace dgc::cuda {

// The kernels of weights.cuh (which states the shapes), for files that g++ compiles. Weights are fp32 in PyTorch's
// layout.
size_t filter_bytes(const Conv2dArgs&, DType);
void load_filter(CudaBackend&, const Conv2dArgs&, ConstView w, DType, void* to);
void load_turned_filter(CudaBackend&, const Conv2dArgs&, ConstView w, DType, void* to);
void add_filter(CudaBackend&, const Conv2dArgs&, DType, const void* from, View dw);
void add_bias(CudaBackend&, ConstView b, View y);
void add_column_sums(CudaBackend&, ConstView dy, View db);

}  // namespace dgc::cuda
