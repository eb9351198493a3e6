#include "tests/fake_cuda/runtime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

namespace dgc::fake_cuda {
namespace {

constexpr uint64_t kEpoch = 64;  // so many pieces of work are queued before pace and favour are drawn again

thread_local cudaError_t last_error = cudaSuccess;

void complain(Machine& m, const std::string& why) {
  m.complaint = why;
  std::fprintf(stderr, "fake CUDA: %s\n", why.c_str());
}

}  // namespace

Machine& machine() {
  static Machine* const one = new Machine;  // static objects of a test may outlive it otherwise
  return *one;
}

uint64_t this_thread_number() {
  static std::atomic<uint64_t> next = 1;
  thread_local const uint64_t mine = next++;
  return mine;
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

uint64_t Machine::draw(uint64_t below) {  // splitmix64
  uint64_t x = random_ += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (x ^ (x >> 31)) % below;
}

std::shared_ptr<Node> Machine::enqueue(CUstream_st* stream, Work work) {
  require_handle(streams, stream, "the stream");
  auto node = std::make_shared<Node>();
  node->work = std::move(work);
  node->lane = stream->number;
  node->device = stream->device;
  node->priority = stream->priority;
  node->before = stream->tail;
  stream->tail = {node};
  if (stream->capture != nullptr) {
    if (stream->capture->invalid) {
      refuse(cudaErrorStreamCaptureInvalidated, "{}: the capture is invalid", node->work.name);
    }
    stream->capture->nodes.push_back(node);
  } else {
    submit(node);
    progress();
  }
  return node;
}

void Machine::submit(const std::shared_ptr<Node>& node) {
  for (const auto& before : node->before) {
    if (before->finished != 0) continue;
    before->after.push_back(node);
    ++node->missing;
  }
  node->before.clear();
  ++waiting_[node->device];
  if (node->missing == 0) ready_.push_back(node);
}

// Work may be executed as soon as it is queued, when somebody waits for it, or at any time between.
void Machine::progress() {
  if (submitted_++ % kEpoch == 0) {
    pace_ = static_cast<int>(draw(3));
    favour_ = draw(1 << 20) * 2 + 1;
  }
  if (pace_ == 0) return;
  if (pace_ == 2 && draw(8) != 0) return;
  run_some(pace_ == 1 ? draw(3) : draw(12));
}

void Machine::run_some(size_t most) {
  for (; most > 0 && execute_one(); --most) {
  }
}

bool Machine::execute_one() {
  const auto can_run = [this](const auto& node) {
    return broken != cudaSuccess || !node->work.can_run || node->work.can_run();
  };
  const auto end = std::partition(ready_.begin(), ready_.end(), can_run);
  if (end == ready_.begin()) return false;
  // Mostly the stream that is in favour goes first, so that others fall far behind.
  auto next = static_cast<size_t>(draw(static_cast<uint64_t>(end - ready_.begin())));
  if (draw(8) != 0) {
    const auto rank = [this](const auto& node) { return node->lane * favour_ % 1021; };
    next = static_cast<size_t>(
        std::max_element(ready_.begin(), end, [&](const auto& a, const auto& b) { return rank(a) < rank(b); }) -
        ready_.begin());
  }
  const std::shared_ptr<Node> node = ready_[next];
  ready_[next] = std::move(ready_.back());
  ready_.pop_back();
  if (broken == cudaSuccess) {
    try {
      const DeviceAccess access;
      if (node->work.run) node->work.run();
    } catch (const std::exception& error) {
      broken = cudaErrorLaunchFailure;
      complain(*this, fmt::format("{}: {}", node->work.name, error.what()));
    } catch (const Refused& refused) {
      broken = cudaErrorIllegalAddress;
      complain(*this, fmt::format("{}: {}", node->work.name, refused.why));
    }
    ++executed[node->work.name];
    last_executions[node->work.name] = {node->priority, node->work.blocks};
  }
  node->work = {};
  node->finished = ++tick_;
  --waiting_[node->device];
  for (const auto& after : node->after) {
    if (--after->missing == 0) ready_.push_back(after);
  }
  node->after.clear();
  return true;
}

// What is left waits for other ranks, whose threads get a turn.
void Machine::wait_for_others() {
  mutex.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  mutex.lock();
}

bool Machine::finished(const Tail& tail) {
  return std::ranges::all_of(tail, [](const auto& node) { return node->finished != 0; });
}

void Machine::finish(const Tail& tail) {
  while (!finished(tail)) {
    if (!execute_one()) wait_for_others();
  }
}

void Machine::finish_device(int device) {
  while (waiting_[device] > 0) {
    if (!execute_one()) wait_for_others();
  }
}

void Machine::drop_all() {
  const cudaError_t before = std::exchange(broken, cudaErrorUnknown);  // so that nothing is run
  while (execute_one()) {
  }
  broken = before;
}

void Machine::invalidate(Capture& capture) { capture.invalid = true; }

bool Machine::fails_now(const char* name, const void* from) {
  ++calls;
  const CallSite site{from, name, !captures.empty()};
  auto known = std::ranges::find(sites, site, &std::pair<CallSite, int64_t>::first);
  if (known == sites.end()) known = sites.insert(known, {site, 0});
  ++known->second;
  if (fail_at == 0 || (!failed_call.empty() && !fail_forever)) return false;
  if (!failed_call.empty()) return true;
  if (fail_site.from == nullptr ? calls < fail_at : fail_site != site || known->second < fail_at) return false;
  failed_call = name;
  return true;
}

// Memory is what runs out most easily.
cudaError_t failure_of(const std::string& call) {
  constexpr std::array kAllocating{"cudaMalloc",      "cudaMallocHost", "cudaGraphInstantiate",
                                   "cudaGraphLaunch", "cudaSetDevice",  "cudaLaunchKernelExC"};
  const bool allocates = std::ranges::count(kAllocating, call) > 0 && !machine().fail_forever;
  return allocates ? cudaErrorMemoryAllocation : cudaErrorUnknown;
}

void refuse_while_capturing(int code, const char* why) {
  for (const auto& capture : machine().captures) {
    const bool concerns =
        capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && capture->thread == this_thread_number());
    if (!concerns) continue;
    machine().invalidate(*capture);
    refuse(code, "{}", why);
  }
}

cudaError_t set_last_error(cudaError_t error) { return last_error = error; }

cudaError_t runtime_call(const char* name, WhileCapturing rule, const std::function<void()>& body, const void* from) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  if (m.fails_now(name, from)) return set_last_error(failure_of(name));
  if (m.broken != cudaSuccess) return set_last_error(m.broken);
  try {
    if (rule == WhileCapturing::refused) refuse_while_capturing();
    body();
  } catch (const Refused& refused) {
    const auto code = static_cast<cudaError_t>(refused.code);
    if (code != cudaErrorNotReady) {
      complain(m, fmt::format("{}: {}", name, refused.why));
      set_last_error(code);  // CUDA does not count "not ready" as an error
    }
    return code;
  }
  if (m.broken != cudaSuccess) return set_last_error(m.broken);
  return cudaSuccess;
}

cudaError_t ending_call(const char* name, const std::function<void()>& body, const void* from) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  const bool fails = m.fails_now(name, from);
  try {
    body();
  } catch (const Refused& refused) {
    complain(m, fmt::format("{}: {}", name, refused.why));
    return set_last_error(static_cast<cudaError_t>(refused.code));
  }
  if (fails) return set_last_error(cudaErrorUnknown);
  return m.broken != cudaSuccess ? set_last_error(m.broken) : cudaSuccess;
}

int library_call(const char* name, int broken, const std::function<void()>& body, const void* from) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  if (m.fails_now(name, from)) return broken;
  if (m.broken != cudaSuccess) return broken;
  try {
    body();
  } catch (const Refused& refused) {
    complain(m, fmt::format("{}: {}", name, refused.why));
    return refused.code;
  }
  return 0;
}

void set(const Options& options) {
  const std::lock_guard lock(machine().mutex);
  machine().options = options;
  machine().seed(options.seed);
}

void fail(int64_t n, bool forever) { fail_at({}, n, forever); }

void fail_at(const CallSite& site, int64_t n, bool forever) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  m.calls = 0;
  m.sites.clear();
  m.fail_site = site;
  m.fail_at = n;
  m.fail_forever = forever;
  m.failed_call.clear();
}

std::vector<std::pair<CallSite, int64_t>> call_sites() {
  const std::lock_guard lock(machine().mutex);
  return machine().sites;
}

int64_t calls() { return machine().calls; }
std::string failed_call() { return machine().failed_call; }
std::string complaint() { return machine().complaint; }

Alive alive() {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  return {m.device_memory.size(),
          m.host_memory.size(),
          m.streams.size(),
          m.events.size(),
          m.graphs.size() + m.executables.size(),
          m.library_objects.size()};
}

void revive() {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  m.drop_all();
  m.broken = cudaSuccess;
  m.complaint.clear();
  set_last_error(cudaSuccess);
}

size_t executed(const std::string& name) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  const auto found = m.executed.find(name);
  return found == m.executed.end() ? 0 : found->second;
}

Execution last_execution(const std::string& name) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  return m.last_executions[name];
}

}  // namespace dgc::fake_cuda

cudaError_t cudaGetLastError() { return std::exchange(dgc::fake_cuda::last_error, cudaSuccess); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorUnknown:
      return "cudaErrorUnknown";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCooperativeLaunchTooLarge:
      return "cudaErrorCooperativeLaunchTooLarge";
    default:
      return "an error without a name in the fake";
  }
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
