#include "kernels/cuda/pool.cuh"

#include "kernels/cuda/queue.h"

namespace dgc {

size_t CudaBackend::pool_saved_bytes(const PoolArgs& args) { return cuda::pool_saved_bytes(args); }

void CudaBackend::pool_forward(const PoolArgs& args, ConstView x, View y, View saved) {
  cuda::Queue queue(*this);
  cuda::pool_forward(queue, args, x, y, saved);
}

void CudaBackend::pool_backward(const PoolArgs& args, ConstView dy, ConstView saved, View dx) {
  cuda::Queue queue(*this);
  cuda::pool_backward(queue, args, dy, saved, dx);
}

}  // namespace dgc
