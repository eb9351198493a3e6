#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// A CUDA runtime, cuBLAS, cuDNN and NCCL that run without a GPU, behind the vendors' own headers. What this header
// declares is how a test steers them. Streams execute their work late and in a drawn order that CUDA's rules allow,
// kernels of our own run in the emulation, and calls of the libraries are computed by plain loops. What CUDA refuses,
// the fake refuses with the same error, and complaint() then says why.
namespace dgc::fake_cuda {

constexpr int kHighestPriority = -5;  // of a stream; the lowest is 0

// What cuDNN knows for a pass of convolutions.
enum class Algorithms {
  deterministic,  // one that is deterministic, among others
  varying,        // only others
  none            // it refuses to list any
};

struct Options {
  uint64_t seed = 1;  // draws the order of execution
  int devices = 1;
  int driver = 13000;   // as cudaDriverGetVersion gives it; 0: there is no driver
  int major = 9;        // compute capability
  int old_devices = 0;  // of the devices, the first ones, whose capability is 7
  // An H100 has 132 multiprocessors. Fewer make grids smaller, which are slow to emulate.
  int multiprocessors = 3;
  int most_blocks = 2;              // that fit on a multiprocessor at once
  size_t memory = size_t{4} << 30;  // of each device
  int cudnn = 91400;                // as cudnnGetVersion gives it
  Algorithms forward = Algorithms::deterministic;
  Algorithms backward_data = Algorithms::deterministic;
  Algorithms backward_filter = Algorithms::deterministic;
  int refused_engines = 0;  // of the two for convolutions that will do, so many cannot be executed, the first ones
  size_t weight_gap = 0;    // bytes between two matrices of a weight space of cuDNN
  int ill_rank = -1;        // whose communicator of NCCL finds an error when it is asked
  int dying_rank = -1;      // whose process is killed while NCCL connects, which the other ranks' NCCL notices first
  // Whether NCCL on the other ranks notices that a rank has aborted, as it does where a connection breaks. NCCL does
  // not promise it: a rank whose peer is gone may wait for ever.
  bool aborts_spread = false;
};

// Changes the options and starts drawing from the seed again. A change of `memory`, `multiprocessors` and the like is
// for objects made later.
void set(const Options&);

// The n-th call from now on fails, where 1 is the next one: once, or, as after a fault of the GPU, with all calls that
// follow. An allocation that fails once is out of memory. Calls that cannot fail, such as cudaGetLastError, are not
// counted. 0 lets no call fail.
void fail(int64_t n, bool forever = false);
int64_t calls();            // that have been counted since fail()
std::string failed_call();  // the name of the call that was made to fail; empty: none so far

// Where the program calls the runtime or a library: a place in the code, outside of a capture or while a stream is
// captured.
struct CallSite {
  const void* from = nullptr;  // where the call returns to; null: any place
  const char* call = nullptr;  // its name
  bool captured = false;
  bool operator==(const CallSite&) const = default;
};
// The sites of the calls since fail(), in the order of their first calls, and how often each has called.
std::vector<std::pair<CallSite, int64_t>> call_sites();
// As fail(), but it is the n-th call of the site that fails.
void fail_at(const CallSite&, int64_t n, bool forever = false);

// Why the last call was refused, or why the device has failed. Empty: nothing so far.
std::string complaint();

// NCCL_GRAPH_REGISTER in the environment as NCCL found it when it last connected a rank; empty: it was not set.
std::string graph_register();

// Objects that have been made and not destroyed, by kind.
struct Alive {
  size_t device_memory = 0, host_memory = 0, streams = 0, events = 0, graphs = 0, library_objects = 0;
};
Alive alive();

// Ends the fault of a device, which CUDA cannot do in a process, and forgets the complaint. Work that is still queued
// is dropped.
void revive();

// How often work was executed since the program began, by name ("cudaMemcpyAsync", "load_filter").
size_t executed(const std::string& name);

// How work of that name was executed last.
struct Execution {
  int priority = 0;    // of its stream, or of the graph's stream where the graph does not keep that of each node
  int64_t blocks = 0;  // of a kernel of ours
};
Execution last_execution(const std::string& name);

}  // namespace dgc::fake_cuda
