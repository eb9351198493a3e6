#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/model.h"
#include "tensor/device.h"
#include "tests/emulation/emulate.h"

namespace dgc {

// Runs kernels as src/kernels/cuda/queue.h does, but emulated, in host memory, at once. Every launch draws its own
// order of threads, and every cooperative one the size of its grid: results must not depend on either.
class EmulatedQueue {
 public:
  EmulatedQueue(Device& device, uint64_t seed) : device_(device), seed_(seed), tickets_(cuda::kTickets) {}

  template <typename Kernel>
  void run(int64_t blocks, const typename Kernel::Args& args) {
    if (blocks == 0) return;
    emulation::emulate({.grid = static_cast<unsigned>(blocks), .block = Kernel::kBlock, .seed = ++seed_},
                       [&](typename Kernel::Shared& shared) { Kernel::run(args, shared); });
  }

  template <typename Kernel>
  int64_t cooperative_blocks() const {
    return 4;
  }
  template <typename Kernel>
  void run_cooperative(int64_t most, const typename Kernel::Args& args) {
    run<Kernel>(1 + static_cast<int64_t>(seed_ * 2654435761u >> 7) % most, args);
  }

  std::byte* scratch(size_t bytes) {  // dirty, as on a GPU
    scratch_.resize(std::max(scratch_.size(), bytes / sizeof(Dirty) + 1));
    std::memset(scratch_.data(), 0xff, scratch_.size() * sizeof(Dirty));
    return scratch_[0].bytes;
  }
  unsigned* tickets() { return tickets_.data(); }
  int multiprocessors() const { return 3; }
  Device& device() { return device_; }

 private:
  struct alignas(256) Dirty {
    std::byte bytes[256];
  };

  Device& device_;
  uint64_t seed_;
  std::vector<unsigned> tickets_;
  std::vector<Dirty> scratch_;
};

}  // namespace dgc
