#include "kernels/cuda/queue.h"
#include "kernels/cuda/rearrange.cuh"

namespace dgc {

using cuda::Queue;

void CudaBackend::global_pool_forward(const GlobalPoolArgs& args, ConstView x, View y) {
  Queue queue(*this);
  cuda::global_pool_forward(queue, args, x, y);
}

void CudaBackend::global_pool_backward(const GlobalPoolArgs& args, ConstView dy, View dx) {
  Queue queue(*this);
  cuda::global_pool_backward(queue, args, dy, dx);
}

void CudaBackend::shortcut_forward(const ShortcutArgs& args, ConstView x, View y) {
  Queue queue(*this);
  cuda::shortcut_forward(queue, args, x, y);
}

void CudaBackend::shortcut_backward(const ShortcutArgs& args, ConstView dy, View dx) {
  Queue queue(*this);
  cuda::shortcut_backward(queue, args, dy, dx);
}

void CudaBackend::flatten_forward(const FlattenArgs& args, ConstView x, View y) {
  Queue queue(*this);
  cuda::flatten_forward(queue, args, x, y);
}

void CudaBackend::flatten_backward(const FlattenArgs& args, ConstView dy, View dx) {
  Queue queue(*this);
  cuda::flatten_backward(queue, args, dy, dx);
}

}  // namespace dgc
