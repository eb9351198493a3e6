// Stream capture and graphs. Captured work is not executed: its nodes and their order become a graph, which a launch
// queues as it was recorded, with the arguments that were recorded.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tests/fake_cuda/runtime.h"

namespace dgc::fake_cuda {
namespace {

// True if all of the capture's work comes before the end of its first stream.
bool joined(const Capture& capture, const Tail& end) {
  std::unordered_set<const Node*> reached;
  Tail open = end;
  while (!open.empty()) {
    const auto node = open.back();
    open.pop_back();
    if (!reached.insert(node.get()).second) continue;
    open.insert(open.end(), node->before.begin(), node->before.end());
  }
  return std::ranges::all_of(capture.nodes, [&](const auto& node) { return reached.contains(node.get()); });
}

}  // namespace

void leave(Capture& capture) {
  for (CUstream_st* const stream : capture.streams) {
    stream->tail = std::move(stream->before_capture);
    stream->before_capture.clear();
    stream->capture = nullptr;
  }
  capture.streams.clear();
  capture.ended = true;
  std::erase_if(machine().captures, [&](const auto& c) { return c.get() == &capture; });
}

}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return runtime_call("cudaStreamBeginCapture", WhileCapturing::allowed, [&] {
    Machine& m = machine();
    require_handle(m.streams, stream, "the stream");
    if (stream->capture != nullptr) refuse(cudaErrorIllegalState, "the stream is already captured");
    auto capture = std::make_shared<Capture>();
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = this_thread_number();
    capture->streams.insert(stream);
    stream->capture = capture;
    stream->before_capture = std::exchange(stream->tail, {});
    m.captures.push_back(std::move(capture));
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const cudaError_t error = ending_call("cudaStreamEndCapture", [&] {
    Machine& m = machine();
    require_handle(m.streams, stream, "the stream");
    const auto capture = stream->capture;
    if (capture == nullptr) refuse(cudaErrorIllegalState, "the stream is not captured");
    if (capture->origin != stream) refuse(cudaErrorStreamCaptureUnmatched, "the capture began on another stream");
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != this_thread_number()) {
      refuse(cudaErrorStreamCaptureWrongThread, "the capture was begun by another thread");
    }
    const Tail end = stream->tail;
    leave(*capture);
    if (capture->invalid) refuse(cudaErrorStreamCaptureInvalidated, "the capture is invalid");
    if (!joined(*capture, end)) refuse(cudaErrorStreamCaptureUnjoined, "a stream has work that was not joined");
    *graph = new CUgraph_st{std::move(capture->nodes)};
    m.graphs.insert(*graph);
  });
  if (error == cudaSuccess || *graph == nullptr) return error;
  machine().graphs.erase(*graph);
  delete std::exchange(*graph, nullptr);
  return error;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return ending_call("cudaGraphDestroy", [&] {
    require_handle(machine().graphs, graph, "the graph");
    machine().graphs.erase(graph);
    delete graph;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  return runtime_call("cudaGraphGetNodes", WhileCapturing::allowed, [&] {
    require_handle(machine().graphs, graph, "the graph");
    *count = graph->nodes.size();
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return runtime_call("cudaGraphInstantiate", WhileCapturing::refused, [&] {
    require_handle(machine().graphs, graph, "the graph");
    *executable = new CUgraphExec_st{graph->nodes, (flags & cudaGraphInstantiateFlagUseNodePriority) != 0};
    machine().executables.insert(*executable);
  });
}

// A launch that is queued still takes place.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return ending_call("cudaGraphExecDestroy", [&] {
    require_handle(machine().executables, executable, "the executable graph");
    machine().executables.erase(executable);
    delete executable;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return runtime_call("cudaGraphLaunch", WhileCapturing::allowed, [&] {
    Machine& m = machine();
    require_handle(m.executables, executable, "the executable graph");
    require_handle(m.streams, stream, "the stream");
    if (stream->capture != nullptr) {
      m.invalidate(*stream->capture);
      refuse(cudaErrorStreamCaptureUnsupported, "the fake records no launch of a graph");
    }
    std::unordered_map<const Node*, std::shared_ptr<Node>> copies;
    Tail ends{stream->tail};
    for (const auto& node : executable->nodes) {
      auto copy = std::make_shared<Node>();
      copy->work = node->work;
      copy->device = node->device;
      copy->priority = executable->keeps_priorities ? node->priority : stream->priority;
      copy->lane = node->lane;
      copy->before = stream->tail;  // all that was queued on the stream comes first
      for (const auto& before : node->before) {
        copy->before.push_back(copies.at(before.get()));
        std::erase(ends, copies.at(before.get()));
      }
      copies[node.get()] = copy;
      ends.push_back(copy);
      m.submit(copy);
    }
    stream->tail = ends;
    m.enqueue(stream, "cudaGraphLaunch", nullptr);
  });
}
