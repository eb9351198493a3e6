#pragma once

#include <span>

#include "kernels/cuda/cuda_backend.h"

namespace dgc::cuda {

// The kernels of weights.cuh (which states the shapes), for files that g++ compiles. Weights are fp32 in PyTorch's
// layout.
size_t filter_bytes(const FilterArgs&, DType);

// A filter that changes its order and type, or its gradient, which is added in ours.
struct FilterCopy {
  FilterArgs filter;
  const void* from;
  void* to;
};
void load_filters(CudaBackend&, DType, std::span<const FilterCopy>);
void add_filters(CudaBackend&, DType, std::span<const FilterCopy>);

void load_turned_filter(CudaBackend&, const Conv2dArgs&, ConstView w, DType, void* to);
void add_bias(CudaBackend&, ConstView b, View y);
void add_column_sums(CudaBackend&, ConstView dy, View db);

}  // namespace dgc::cuda
