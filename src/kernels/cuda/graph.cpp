#include <algorithm>
#include <utility>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/launch.h"
#include "tensor/errors.h"

namespace dgc {
namespace cuda {
namespace {

constexpr int kRunsBefore = 2;  // the first run allocates and sets libraries up, the second is a reserve

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Captured = std::unique_ptr<CUgraph_st, DestroyGraph>;

// Other threads may go on calling CUDA while this one captures.
Captured capture(cudaStream_t stream, const std::function<void()>& body) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    body();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  return Captured(graph);
}

}  // namespace

Graphs::Graphs(const CudaDevice& device, Nodes nodes)
    : device_(device), nodes_(std::move(nodes)), most_nodes_(device.total_bytes() / kShareOfMemory / kNodeBytes) {}

Graphs::Graph::Graph(cudaGraphExec_t graph, Nodes all, size_t nodes)
    : graph_(graph), all_(std::move(all)), nodes_(nodes) {
  *all_ += nodes_;
}

Graphs::Graph::~Graph() {
  cudaGraphExecDestroy(graph_);
  *all_ -= nodes_;
}

void Graphs::forget_unused() {
  std::erase_if(recordings_, [&](const auto& one) { return calls_ - one.second.used > kInUse; });
}

bool Graphs::all_in_use() const {
  return std::ranges::count_if(recordings_, [](const auto& one) { return one.second.graph != nullptr; }) >= kMost;
}

bool Graphs::has_room_for(size_t nodes, Room room) const {
  if (room == Room::needed) return true;
  if (all_in_use() || *nodes_ + nodes > most_nodes_) return false;
  return device_.free_bytes() > nodes * kNodeBytes + device_.total_bytes() / kShareLeftFree;
}

// Whether the GPU has no memory left for a graph. Then this object makes no more graphs than there are now.
bool Graphs::is_full(cudaError_t error, Room room) {
  if (error != cudaErrorMemoryAllocation) return false;
  cudaGetLastError();  // the next launch would report it once more
  if (room == Room::needed) {
    throw_user_error(
        "out of memory on {}: there is none left for a recording of the step; lower "
        "training.batch_per_worker",
        device_.name());
  }
  most_nodes_ = std::min<size_t>(most_nodes_, *nodes_);
  return true;
}

// Leaves the recording without a graph where it finds no room.
void Graphs::record(Recording& recording, const std::function<void()>& body, Room room) {
  recording.graph.reset();
  const Captured captured = capture(device_.stream(), body);
  size_t nodes = 0;
  check(cudaGraphGetNodes(captured.get(), nullptr, &nodes), "cudaGraphGetNodes");
  recording.nodes = nodes;
  if (!has_room_for(nodes, room)) return;
  cudaGraphExec_t made = nullptr;
  // Kernels keep the priorities of the streams that they were queued on.
  const cudaError_t error = cudaGraphInstantiate(&made, captured.get(), cudaGraphInstantiateFlagUseNodePriority);
  if (is_full(error, room)) return;
  check(error, "cudaGraphInstantiate");
  recording.graph = std::make_unique<Graph>(made, nodes_, nodes);
  recording.allocations = device_.allocations();
}

void Graphs::run(const RecordKey& key, const std::function<void()>& body, Room room) {
  Recording& recording = recordings_[key];
  recording.used = ++calls_;
  // An allocation since the recording may have moved scratch memory, whose old address the graph holds.
  const bool is_recorded = recording.graph != nullptr && recording.allocations == device_.allocations();
  if (recording.graph == nullptr) forget_unused();
  const bool may_record =
      recording.graph != nullptr || (recording.runs >= kRunsBefore && has_room_for(recording.nodes, room));
  if (!is_recorded && may_record) record(recording, body, room);
  if (recording.graph != nullptr) {
    const NvtxRange range("recorded");
    const cudaError_t error = cudaGraphLaunch(recording.graph->get(), device_.stream());  // the first takes memory
    if (error == cudaSuccess) return;
    recording.graph.reset();
    if (!is_full(error, room)) check(error, "cudaGraphLaunch");
  }
  body();
  ++recording.runs;
}

}  // namespace cuda

void CudaBackend::run_recorded(const RecordKey& key, const std::function<void()>& body) { graphs_->run(key, body); }

void CudaBackend::run_recorded_together(const RecordKey& key, const std::function<void()>& body) {
  graphs_->run(key, body, cuda::Graphs::Room::needed);
}

}  // namespace dgc
