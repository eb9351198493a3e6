#pragma once

#include <cuda_runtime.h>

#include <atomic>
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
// What the last kInUse calls have not used is forgotten. A graph finds room while there are fewer than kMost, all
// graphs of a GPU together take at most a share of its memory, and a share is left free for what has not been allocated
// yet. Where there is no room for another graph, its body is called as it is, because bodies that take turns would
// drive each other's graphs out and be recorded again and again.
class Graphs {
 public:
  static constexpr int64_t kMost = 128;  // the passes of four workers on AN4 take 95 (docs/results.md)
  static constexpr uint64_t kInUse = 4096;
  // What a node takes of a GPU's memory, about: a recurrent layer queues several kernels in each time step, so a pass
  // over an utterance may have 100,000 nodes. Source: NVIDIA/cccl, pull request 3768, "around 10KB per kernel node".
  static constexpr size_t kNodeBytes = size_t{10} << 10;
  static constexpr size_t kShareOfMemory = 8;  // an eighth
  static constexpr size_t kShareLeftFree = 32;

  // Counts the nodes of all graphs of a GPU, which the lanes of a backend share.
  using Nodes = std::shared_ptr<std::atomic<size_t>>;
  Graphs(const CudaDevice&, Nodes);
  const Nodes& nodes() const { return nodes_; }

  // needed: the body is recorded whatever room there is, as ranks that record together must, and run() throws UserError
  // where the GPU has no memory for its graph.
  enum class Room { if_there_is, needed };
  void run(const RecordKey& key, const std::function<void()>& body, Room = Room::if_there_is);

 private:
  // A graph that can be launched. It counts its nodes as long as it lives.
  class Graph {
   public:
    Graph(cudaGraphExec_t, Nodes, size_t nodes);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    cudaGraphExec_t get() const { return graph_; }

   private:
    cudaGraphExec_t graph_;
    Nodes all_;
    size_t nodes_;
  };
  struct Recording {
    int runs = 0;       // of the body as it is
    uint64_t used = 0;  // the number of the call that used it last
    std::unique_ptr<Graph> graph;
    size_t allocations = 0;  // CudaDevice::allocations() when the graph was recorded
    size_t nodes = 0;        // of the graph, as far as the body has been captured
  };
  bool is_full(cudaError_t, Room);
  bool has_room_for(size_t nodes, Room) const;
  void forget_unused();
  bool all_in_use() const;
  void record(Recording&, const std::function<void()>& body, Room);

  const CudaDevice& device_;
  Nodes nodes_;
  size_t most_nodes_;
  uint64_t calls_ = 0;
  std::map<RecordKey, Recording> recordings_;
};

}  // namespace dgc::cuda
