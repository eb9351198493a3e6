#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/device_cuda.h"

namespace dgc::cuda {

// The recordings of run_recorded(). A body is called as it is until all that it needs is allocated and set up. The next
// call records it into a CUDA graph, and later calls replay the graph: one launch for a whole step.
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
    size_t allocations = 0;  // CudaDevice::allocations() when the graph was recorded
  };
  Recording& find(uint64_t key);
  void record(Recording&, const std::function<void()>& body);

  const CudaDevice& device_;
  std::vector<Recording> recordings_;  // the recording that was used last is the last one
};

}  // namespace dgc::cuda
