#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/global.cuh"
#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/model.h"

// What a .cu file needs to define ops. Each file is compiled for the program by nvcc, and twice for the tests by g++:
// with tests/emulation before src on the include path, where this header and model.h are an emulation, and with
// tests/fake_cuda before src, where model.h and global.cuh are. So the same host code and the same bodies run without a
// GPU. weights.cu is not among the files that tests/emulation takes.
namespace dgc {

using KernelBackend = CudaBackend;

namespace cuda {

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
  // So many counters for last_block(), which are 0.
  unsigned* tickets(int64_t count) {
    const auto counters = static_cast<size_t>(std::max(count, kFewestTickets));
    return reinterpret_cast<unsigned*>(
        at_least(counters * sizeof(unsigned), backend_.tickets_, backend_.device_, MemoryUse::scratch));
  }
  int multiprocessors() const { return backend_.cuda_device_->multiprocessors(); }
  Device& device() { return *backend_.device_; }

 private:
  CudaBackend& backend_;
};

}  // namespace cuda

}  // namespace dgc
