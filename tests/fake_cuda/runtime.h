#pragma once

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fake_cuda/fake_cuda.h"

// What the files of the fake share: queued work, the objects behind CUDA's handles, and how a call is entered.
namespace dgc::fake_cuda {

// What a piece of work does.
struct Work {
  std::string name;
  std::function<void()> run{};
  std::function<bool()> can_run{};  // whether what other ranks send is there; empty: always
  const void* owner = nullptr;      // the communicator of NCCL that it belongs to
  int64_t blocks = 0;               // of a kernel
};

// A piece of queued work. It is executed once all work before it has been.
struct Node {
  Work work;
  int device = 0;
  int priority = 0;   // its stream's
  uint64_t lane = 0;  // a number of its stream's, which the order of execution is drawn by
  std::vector<std::shared_ptr<Node>> before;
  std::vector<std::shared_ptr<Node>> after;
  size_t missing = 0;     // nodes before it that have not been executed
  uint64_t finished = 0;  // when it was executed, counted in nodes; 0: not yet
};
// What later work of a stream waits for.
using Tail = std::vector<std::shared_ptr<Node>>;

// A recording that has begun and not ended.
struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode{};
  std::vector<std::shared_ptr<Node>> nodes;
  std::set<CUstream_st*> streams;
  uint64_t thread = 0;
  bool invalid = false;
  bool ended = false;
};

}  // namespace dgc::fake_cuda

struct CUstream_st {
  uint64_t number = 0;
  int device = 0;
  int priority = 0;
  dgc::fake_cuda::Tail tail;
  std::shared_ptr<dgc::fake_cuda::Capture> capture;
  dgc::fake_cuda::Tail before_capture;
};

struct CUevent_st {
  bool timed = false, recorded = false;
  dgc::fake_cuda::Tail tail;
  std::shared_ptr<dgc::fake_cuda::Capture> capture;  // that it was last recorded in; null: in none
};

struct CUgraph_st {
  std::vector<std::shared_ptr<dgc::fake_cuda::Node>> nodes;
};
struct CUgraphExec_st {
  std::vector<std::shared_ptr<dgc::fake_cuda::Node>> nodes;  // every node behind those that it waits for
  bool keeps_priorities = false;                             // of the streams that it was captured from
};

namespace dgc::fake_cuda {

// Ends a call of the runtime or a library, and says why.
struct Refused {
  int code;  // a cudaError_t, cudnnStatus_t or cublasStatus_t
  std::string why;
};

template <typename... Args>
[[noreturn]] void refuse(int code, fmt::format_string<Args...> format, Args&&... args) {
  throw Refused{code, fmt::format(format, std::forward<Args>(args)...)};
}

struct Allocation {
  size_t bytes = 0;
  void* pages = nullptr;
  size_t page_bytes = 0;
};

// Ends a capture: its streams go on where they were before it.
void leave(Capture&);

class Machine {
 public:
  std::recursive_mutex mutex;
  Options options;

  std::map<uintptr_t, Allocation> device_memory, host_memory;  // by address
  size_t device_bytes = 0;
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::set<CUgraph_st*> graphs;
  std::set<CUgraphExec_st*> executables;
  std::set<const void*> library_objects;
  std::vector<std::shared_ptr<Capture>> captures;  // that have not ended

  uint64_t draw(uint64_t below);
  void seed(uint64_t value) { random_ = value; }

  // Queues work on a stream. Where the stream is being captured, the work becomes a node of the graph.
  std::shared_ptr<Node> enqueue(CUstream_st* stream, Work work);
  std::shared_ptr<Node> enqueue(CUstream_st* stream, const std::string& name, std::function<void()> run) {
    return enqueue(stream, {.name = name, .run = std::move(run)});
  }
  // Queues a node whose `before` is set.
  void submit(const std::shared_ptr<Node>& node);
  void finish(const Tail&);  // executes until these have been executed
  void finish_device(int device);
  void run_some(size_t most);  // of what can run
  static bool finished(const Tail&);
  void wait_for_others();  // gives other threads a turn
  void drop_all();

  void invalidate(Capture&);

  // The state of the GPU: a fault of a kernel is reported by every later call.
  cudaError_t broken = cudaSuccess;
  std::string complaint;
  std::map<std::string, size_t> executed;
  std::map<std::string, Execution> last_executions;

  // What fail() has planted, and what has been counted since: in all, and of each site.
  int64_t calls = 0, fail_at = 0;
  CallSite fail_site;  // whose calls are counted to fail_at
  bool fail_forever = false;
  std::string failed_call;
  std::vector<std::pair<CallSite, int64_t>> sites;
  bool fails_now(const char* name, const void* from);

 private:
  bool execute_one();  // unless nothing can run
  void progress();

  uint64_t random_ = 1, tick_ = 0, submitted_ = 0;
  int pace_ = 0;
  uint64_t favour_ = 1;
  std::vector<std::shared_ptr<Node>> ready_;
  std::map<int, size_t> waiting_;  // nodes that are submitted and not executed, by device
};

Machine& machine();
uint64_t this_thread_number();
int& current_device();  // of this thread

// Lets this process touch device memory, which may otherwise be protected.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// Whether [pointer, pointer + bytes) lies in one allocation.
bool on_device(const void* pointer, size_t bytes);
bool on_host_pinned(const void* pointer, size_t bytes);
bool touches_device(const void* pointer);
// Throws Refused unless [pointer, pointer + bytes) is device memory and aligned to `alignment`.
void require_device(int code, const char* what, const void* pointer, size_t bytes, size_t alignment = 4);

enum class WhileCapturing { allowed, refused };
// Throws Refused, and makes the capture invalid, where the calling thread captures a stream, or any thread in the mode
// cudaStreamCaptureModeGlobal.
void refuse_while_capturing(int code = cudaErrorStreamCaptureUnsupported,
                            const char* why = "the call is not allowed while a stream is captured");

// What every call of the CUDA runtime does: one at a time, it counts, may be made to fail, and remembers its error.
// `from` is where the function that calls this one returns to, in the code that is tested.
cudaError_t set_last_error(cudaError_t error);
cudaError_t runtime_call(const char* name, WhileCapturing, const std::function<void()>& body,
                         const void* from = __builtin_return_address(0));

// A call that destroys something does so also where it is made to fail, as there is no second try.
cudaError_t ending_call(const char* name, const std::function<void()>& body,
                        const void* from = __builtin_return_address(0));

// The same for a library's calls, whose status is an int. `broken` is the status of a call that is made to fail.
int library_call(const char* name, int broken, const std::function<void()>& body, const void* from);

template <typename Set, typename Handle>
void require_handle(const Set& known, Handle handle, const char* what) {
  if (known.count(handle) == 0) refuse(cudaErrorInvalidResourceHandle, "{} is not one that lives", what);
}

}  // namespace dgc::fake_cuda
