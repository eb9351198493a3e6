#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/cuda/model.h"
#include "tests/emulation/emulate.h"
#include "tests/emulation/emulated_backend.h"

// In the place of src/kernels/cuda/queue.h: g++ compiles the .cu files with it for the tests.
namespace dgc {

using KernelBackend = EmulatedBackend;

namespace cuda {

// Runs kernels emulated, in host memory, at once. Every launch draws its own order of threads, and every cooperative
// one the size of its grid: results must not depend on either.
class EmulatedQueue {
 public:
  explicit EmulatedQueue(EmulatedBackend& backend) : backend_(backend) {}

  template <typename Kernel>
  void run(int64_t blocks, const typename Kernel::Args& args) {
    if (blocks == 0) return;
    emulation::emulate({.grid = static_cast<unsigned>(blocks), .block = Kernel::kBlock, .seed = ++backend_.seed_},
                       [&](typename Kernel::Shared& shared) { Kernel::run(args, shared); });
  }

  template <typename Kernel>
  int64_t cooperative_blocks() const {
    return 4;
  }
  template <typename Kernel>
  void run_cooperative(int64_t most, const typename Kernel::Args& args) {
    run<Kernel>(1 + static_cast<int64_t>(backend_.seed_ * 2654435761u >> 7) % most, args);
  }

  std::byte* scratch(size_t bytes) {  // dirty, as on a GPU
    using Dirty = EmulatedBackend::Dirty;
    auto& memory = backend_.workspace_;
    memory.resize(std::max(memory.size(), bytes / sizeof(Dirty) + 1));
    std::memset(memory.data(), 0xff, memory.size() * sizeof(Dirty));
    return memory[0].bytes;
  }
  unsigned* tickets() { return backend_.tickets_.data(); }
  int multiprocessors() const { return 3; }
  Device& device() { return *backend_.device(); }

 private:
  EmulatedBackend& backend_;
};

using Queue = EmulatedQueue;  // a name of its own: a program may hold the real Queue too

}  // namespace cuda

}  // namespace dgc
