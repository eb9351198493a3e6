#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <typeinfo>

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
    run_as<Kernel>(blocks, args, false);
  }

  template <typename Kernel>
  int64_t cooperative_blocks() const {
    return 4;
  }
  template <typename Kernel>
  void run_cooperative(int64_t most, const typename Kernel::Args& args) {
    run_as<Kernel>(1 + static_cast<int64_t>(backend_.seed_ * 2654435761u >> 7) % most, args, true);
  }

  std::byte* scratch(size_t bytes) {  // dirty, as on a GPU
    using Dirty = EmulatedBackend::Dirty;
    auto& memory = backend_.workspace_;
    memory.resize(std::max(memory.size(), bytes / sizeof(Dirty) + 1));
    std::memset(memory.data(), 0xff, memory.size() * sizeof(Dirty));
    return memory[0].bytes;
  }
  unsigned* tickets(int64_t count) {
    backend_.tickets_.resize(std::max(backend_.tickets_.size(), static_cast<size_t>(count)));
    return backend_.tickets_.data();
  }
  int multiprocessors() const { return 3; }
  Device& device() { return *backend_.device(); }

 private:
  template <typename Kernel>
  void run_as(int64_t blocks, const typename Kernel::Args& args, bool cooperative) {
    using Shared = typename Kernel::Shared;
    static_assert(std::is_trivially_default_constructible_v<Shared>, "shared memory starts without a constructor");
    if (blocks == 0) return;
    backend_.runner_->run(
        {.kernel = typeid(Kernel),
         .how = {.grid = static_cast<unsigned>(blocks), .block = Kernel::kBlock, .seed = ++backend_.seed_},
         .cooperative = cooperative,
         .args = &args,
         .args_bytes = sizeof(args),
         .shared_bytes = sizeof(Shared),
         .body = [&args](void* shared) { Kernel::run(args, *static_cast<Shared*>(shared)); }});
  }

  EmulatedBackend& backend_;
};

using Queue = EmulatedQueue;  // a name of its own: a program may hold the real Queue too

}  // namespace cuda

}  // namespace dgc
