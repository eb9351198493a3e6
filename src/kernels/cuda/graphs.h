#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/device_cuda.h"

namespace dgc::cuda {

// What run_recorded() remembers. A body runs as it is until everything it needs is allocated and set up, is recorded
// into a CUDA graph then, and from then on replayed: one launch for a whole step.
class Graphs {
 public:
  explicit Graphs(const CudaDevice& device) : device_(device) {}
  ~Graphs();
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  void run(uint64_t key, const std::function<void()>& body);

 private:
  struct Recording {
    uint64_t key = 0;
    int runs = 0;
    cudaGraphExec_t graph = nullptr;
    size_t allocations = 0;  // of the device, when it was recorded
  };
  Recording& find(uint64_t key);
  void record(Recording&, const std::function<void()>& body);

  const CudaDevice& device_;
  std::vector<Recording> recordings_;  // the one used last comes last
};

}  // namespace dgc::cuda
