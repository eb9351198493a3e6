#include <algorithm>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/launch.h"

namespace dgc {
namespace cuda {
namespace {

constexpr int kRunsBefore = 2;  // the first run allocates and sets libraries up, the second is a reserve

}  // namespace

void Graphs::forget_unused() {
  std::erase_if(recordings_, [&](const auto& one) { return calls_ - one.second.used > kInUse; });
}

bool Graphs::all_in_use() const {
  return std::ranges::count_if(recordings_, [](const auto& one) { return one.second.graph != nullptr; }) >= kMost;
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
  recording.graph.reset(made);
  recording.allocations = device_.allocations();
}

void Graphs::run(const RecordKey& key, const std::function<void()>& body) {
  Recording& recording = recordings_[key];
  recording.used = ++calls_;
  if (recording.graph == nullptr) {
    forget_unused();
    if (recording.runs < kRunsBefore || all_in_use()) {
      body();
      ++recording.runs;
      return;
    }
  }
  // An allocation since the recording may have moved scratch memory, whose old address the graph holds.
  if (recording.graph == nullptr || recording.allocations != device_.allocations()) record(recording, body);
  const NvtxRange range("recorded");
  check(cudaGraphLaunch(recording.graph.get(), device_.stream()), "cudaGraphLaunch");
}

}  // namespace cuda

void CudaBackend::run_recorded(const RecordKey& key, const std::function<void()>& body) { graphs_->run(key, body); }

}  // namespace dgc
