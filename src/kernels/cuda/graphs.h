#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "kernels/backend.h"
#include "tensor/device_cuda.h"

namespace dgc::cuda {

// The recordings of run_recorded(). A body is called as it is until all that it needs is allocated and set up. The next
// call records it into a CUDA graph, and later calls replay the graph: one launch for all that the body queues.
//
// There are at most kMost graphs, and what the last kInUse calls have not used is forgotten. Where kMost graphs are in
// use, another body is called as it is, because bodies that take turns would drive each other's graphs out and be
// recorded again and again.
class Graphs {
 public:
  static constexpr int64_t kMost = 128;  // the passes of four workers on AN4 take 95 (docs/results.md)
  static constexpr uint64_t kInUse = 4096;

  explicit Graphs(const CudaDevice& device) : device_(device) {}

  void run(const RecordKey& key, const std::function<void()>& body);

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  struct Recording {
    int runs = 0;       // of the body as it is
    uint64_t used = 0;  // the number of the call that used it last
    std::unique_ptr<CUgraphExec_st, Destroy> graph;
    size_t allocations = 0;  // CudaDevice::allocations() when the graph was recorded
  };
  void forget_unused();
  bool all_in_use() const;
  void record(Recording&, const std::function<void()>& body);

  const CudaDevice& device_;
  uint64_t calls_ = 0;
  std::map<RecordKey, Recording> recordings_;
};

}  // namespace dgc::cuda
