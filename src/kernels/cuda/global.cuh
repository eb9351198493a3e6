#pragma once

#include "kernels/cuda/model.h"

namespace dgc::cuda {

// A kernel is a struct with kName, kBlock (the number of threads of a block), Args, Shared and
//   __device__ static void run(const Args&, Shared&).
// kBlocksAtOnce, where a kernel has it, bounds the kernel's registers: so many blocks must fit on a multiprocessor.
// An op is a member function of KernelBackend that cuts its data into launches of kernels on a Queue (queue.h).
template <typename Kernel>
consteval int blocks_at_once() {
  if constexpr (requires { Kernel::kBlocksAtOnce; }) {
    return Kernel::kBlocksAtOnce;
  } else {
    return 1;
  }
}

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kBlock, blocks_at_once<Kernel>())
    global(const __grid_constant__ typename Kernel::Args args) {
  __shared__ typename Kernel::Shared shared;
  Kernel::run(args, shared);
}

}  // namespace dgc::cuda
