#include <algorithm>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/launch.h"

namespace dgc {
namespace cuda {
namespace {

constexpr int kRunsBefore = 2;     // the first run allocates and sets libraries up, the second is a reserve
constexpr size_t kMostGraphs = 8;  // training uses one or two keys for each sparsity

}  // namespace

Graphs::~Graphs() {
  for (const Recording& recording : recordings_) {
    if (recording.graph != nullptr) cudaGraphExecDestroy(recording.graph);
  }
}

Graphs::Recording& Graphs::find(uint64_t key) {
  const auto known = std::ranges::find(recordings_, key, &Recording::key);
  if (known != recordings_.end()) {
    std::rotate(known, known + 1, recordings_.end());
  } else {
    if (recordings_.size() == kMostGraphs) {
      if (recordings_.front().graph != nullptr) cudaGraphExecDestroy(recordings_.front().graph);
      recordings_.erase(recordings_.begin());
    }
    recordings_.push_back({.key = key});
  }
  return recordings_.back();
}

// Other threads may go on calling CUDA while this one records.
void Graphs::record(Recording& recording, const std::function<void()>& body) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(device_.stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    body();
  } catch (...) {
    cudaStreamEndCapture(device_.stream(), &graph);
    cudaGetLastError();
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(device_.stream(), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  // Kernels keep the priorities of the streams that they were queued on.
  const cudaError_t error = cudaGraphInstantiate(&made, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  check(error, "cudaGraphInstantiate");
  if (recording.graph != nullptr) cudaGraphExecDestroy(recording.graph);
  recording.graph = made;
  recording.allocations = device_.allocations();
}

void Graphs::run(uint64_t key, const std::function<void()>& body) {
  Recording& recording = find(key);
  if (recording.runs < kRunsBefore) {
    body();
    ++recording.runs;
    return;
  }
  // An allocation since the recording may have moved scratch memory, whose old address the graph holds.
  if (recording.graph == nullptr || recording.allocations != device_.allocations()) record(recording, body);
  const NvtxRange range("recorded");
  check(cudaGraphLaunch(recording.graph, device_.stream()), "cudaGraphLaunch");
}

}  // namespace cuda

void CudaBackend::run_recorded(uint64_t key, const std::function<void()>& body) { graphs_->run(key, body); }

}  // namespace dgc
