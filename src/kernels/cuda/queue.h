#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/model.h"

// What a .cu file needs to define ops. Each file is compiled twice: for the program by nvcc, and for the tests by g++,
// with tests/emulation before src on the include path. There this header and model.h are an emulation, so that the same
// host code and the same bodies run without a GPU. weights.cu alone is for the program only.
namespace dgc {

using KernelBackend = CudaBackend;

namespace cuda {

// A kernel is a struct with kName, kBlock (the number of threads of a block), Args, Shared and
//   __device__ static void run(const Args&, Shared&).
// kBlocksAtOnce, where a kernel has it, bounds the kernel's registers: so many blocks must fit on a multiprocessor.
// An op is a member function of KernelBackend that cuts its data into launches of kernels on a Queue.
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

// Launches kernels on a backend's stream, and hands out what ops need besides.
class Queue {
 public:
  explicit Queue(CudaBackend& backend) : backend_(backend) {}

  template <typename Kernel>
  void run(int64_t blocks, const typename Kernel::Args& args) {
    launch({Kernel::kName, backend_.stream(), blocks, Kernel::kBlock}, global<Kernel>, args);
  }
  // run_cooperative() is for kernels that call grid_sync(): `blocks` must be at most cooperative_blocks(). Ops keep
  // that number, because the call asks the driver.
  template <typename Kernel>
  int64_t cooperative_blocks() const {
    return std::min(cuda::cooperative_blocks(*backend_.cuda_device_, global<Kernel>, Kernel::kBlock),
                    backend_.most_cooperative_blocks_);
  }
  template <typename Kernel>
  void run_cooperative(int64_t blocks, const typename Kernel::Args& args) {
    launch_cooperative({Kernel::kName, backend_.stream(), blocks, Kernel::kBlock}, global<Kernel>, args);
  }
  std::byte* scratch(size_t bytes) { return backend_.workspace(bytes); }  // an op may ask once
  unsigned* tickets() {
    Buffer& tickets = backend_.tickets_;  // kTickets counters for last_block()
    if (tickets.data() == nullptr)
      tickets = Buffer(backend_.device_, kTickets * sizeof(unsigned), MemoryUse::scratch);  // zeroed
    return static_cast<unsigned*>(tickets.data());
  }
  int multiprocessors() const { return backend_.cuda_device_->multiprocessors(); }
  Device& device() { return *backend_.device_; }

 private:
  CudaBackend& backend_;
};

}  // namespace cuda

}  // namespace dgc
