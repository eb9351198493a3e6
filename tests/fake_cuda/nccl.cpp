// NCCL between ranks that are threads of one process. A rank's sends and receives are work of its stream: a send leaves
// a copy of the data, and a receive can run once that copy is there. Calls only queue, and are "in progress" for a
// while.
#include <nccl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "tests/fake_cuda/runtime.h"

namespace dgc::fake_cuda {

// What is on its way between the ranks that share an id. The machine's mutex guards it.
struct World {
  int here = 0;
  std::set<int> devices;  // of the ranks that are here
  bool broken = false;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> boxes;
};

namespace {

constexpr int kBusy = 3;  // so often a call is "in progress" when asked

std::map<std::array<char, sizeof(ncclUniqueId)>, std::shared_ptr<World>>& worlds() {
  static std::map<std::array<char, sizeof(ncclUniqueId)>, std::shared_ptr<World>> all;
  return all;
}

struct Transfer {
  bool sends;
  const void* from;
  void* to;
  size_t bytes;
  int peer;
};

thread_local bool grouped = false;
thread_local std::vector<Transfer> transfers;
thread_local ncclComm_t group_comm = nullptr;
thread_local cudaStream_t group_stream = nullptr;

ncclResult_t nccl_call(const char* name, const std::function<void()>& body,
                       const void* from = __builtin_return_address(0)) {
  return static_cast<ncclResult_t>(library_call(name, ncclInternalError, body, from));
}

// Ends a communicator, also where the call is made to fail, as there is no second try.
ncclResult_t nccl_end(const char* name, const std::function<void()>& body,
                      const void* from = __builtin_return_address(0)) {
  const cudaError_t before = cudaGetLastError();
  const cudaError_t error = ending_call(name, body, from);
  set_last_error(before);
  return error == cudaSuccess ? ncclSuccess : ncclInternalError;
}

size_t bytes_of(size_t count, ncclDataType_t type) {
  if (type != ncclInt8 && type != ncclFloat) refuse(ncclInvalidArgument, "the fake has no data of this type");
  return count * (type == ncclFloat ? 4 : 1);
}

}  // namespace
}  // namespace dgc::fake_cuda

struct ncclComm {
  std::shared_ptr<dgc::fake_cuda::World> world;
  int rank = 0, ranks = 1, busy = dgc::fake_cuda::kBusy;
};

namespace dgc::fake_cuda {
namespace {

void require_comm(ncclComm_t comm) {
  if (machine().library_objects.count(comm) == 0) refuse(ncclInvalidArgument, "there is no such communicator");
}

void add(ncclComm_t comm, cudaStream_t stream, const Transfer& transfer) {
  require_comm(comm);
  if (comm->busy > 0) refuse(ncclInvalidUsage, "the call before this one is still in progress");
  require_device(ncclInvalidArgument, "the data", transfer.sends ? transfer.from : transfer.to, transfer.bytes, 1);
  group_comm = comm;
  group_stream = stream;
  transfers.push_back(transfer);
}

// All sends come before all receives, so that no order of the calls can make ranks wait for each other.
ncclResult_t queue_group() {
  grouped = false;
  const ncclComm_t comm = std::exchange(group_comm, nullptr);
  const std::vector<Transfer> all = std::exchange(transfers, {});
  if (comm == nullptr) return ncclSuccess;
  const auto world = comm->world;
  const int rank = comm->rank;
  Work send{.name = "ncclSend", .owner = comm};
  send.run = [all, world, rank] {
    for (const Transfer& t : all) {
      const auto* const from = static_cast<const std::byte*>(t.from);
      if (t.sends) world->boxes[{rank, t.peer}].emplace_back(from, from + t.bytes);
    }
  };
  Work receive{.name = "ncclRecv", .owner = comm};
  receive.can_run = [all, world, rank] {
    std::map<int, size_t> expected;
    for (const Transfer& t : all) expected[t.peer] += t.sends ? 0 : 1;
    return world->broken || std::ranges::all_of(expected, [&](const auto& from) {
             return world->boxes[{from.first, rank}].size() >= from.second;
           });
  };
  receive.run = [all, world, rank] {
    for (const Transfer& t : all) {
      if (t.sends || world->broken) continue;
      auto& box = world->boxes[{t.peer, rank}];
      if (box.front().size() != t.bytes) refuse(0, "a rank receives {} of {} bytes", t.bytes, box.front().size());
      std::memcpy(t.to, box.front().data(), t.bytes);
      box.pop_front();
    }
  };
  machine().enqueue(group_stream, std::move(send));
  machine().enqueue(group_stream, std::move(receive));
  comm->busy = kBusy;
  return ncclInProgress;
}

bool share_a_device(const World& world) { return world.devices.size() < static_cast<size_t>(world.here); }

bool is_recorded(const void* comm) {
  const auto holds = [comm](const auto* graph) {
    return std::ranges::any_of(graph->nodes, [comm](const auto& node) { return node->work.owner == comm; });
  };
  return std::ranges::any_of(machine().executables, holds) || std::ranges::any_of(machine().graphs, holds);
}

}  // namespace
}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return nccl_call("ncclGetUniqueId", [&] {
    static int made = 0;
    *id = {};
    const int next = ++made;
    std::memcpy(id->internal, &next, sizeof(next));
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const ncclResult_t result = nccl_call("ncclCommInitRankConfig", [&] {
    if (config->blocking != 0) refuse(ncclInvalidUsage, "the fake does not block");
    auto& world = worlds()[std::to_array(id.internal)];
    if (world == nullptr) world = std::make_shared<World>();
    ++world->here;
    world->devices.insert(current_device());
    *comm = new ncclComm{world, rank, ranks};
    machine().library_objects.insert(*comm);
  });
  return result == ncclSuccess ? ncclInProgress : result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  return nccl_call("ncclCommGetAsyncError", [&] {
    require_comm(comm);
    const bool starts = comm->world->here < comm->ranks;
    const bool in_progress = starts || comm->busy > 0;
    if (in_progress && comm->busy > 0) --comm->busy;
    const bool ill = comm->world->broken || comm->rank == machine().options.ill_rank;
    *state = ill ? ncclRemoteError : in_progress ? ncclInProgress : ncclSuccess;
    if (!starts && share_a_device(*comm->world)) *state = ncclInvalidUsage;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return nccl_call("ncclCommFinalize", [&] {
    require_comm(comm);
    comm->busy = kBusy;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return nccl_end("ncclCommDestroy", [&] {
    require_comm(comm);
    if (is_recorded(comm)) refuse(ncclInvalidUsage, "a graph that holds the communicator's work must go first");
    machine().library_objects.erase(comm);
    delete comm;
  });
}

// As NCCL does, the call waits until all graphs with the communicator's work are gone; but not for ever.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return nccl_end("ncclCommAbort", [&] {
    require_comm(comm);
    comm->world->broken = true;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (is_recorded(comm) && std::chrono::steady_clock::now() < deadline) machine().wait_for_others();
    const bool hangs = is_recorded(comm);
    machine().library_objects.erase(comm);
    delete comm;
    if (hangs) refuse(ncclInvalidUsage, "the call would wait for ever, as a graph holds the communicator's work");
  });
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "another error of NCCL";
}

const char* ncclGetLastError(ncclComm_t comm) {
  const bool shared = comm != nullptr && share_a_device(*comm->world);
  return shared ? "Duplicate GPU detected : rank 1 and rank 0" : machine().complaint.c_str();
}

ncclResult_t ncclGroupStart() {
  grouped = true;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  ncclResult_t queued = ncclSuccess;
  const ncclResult_t result = nccl_call("ncclGroupEnd", [&] { queued = queue_group(); });
  return result == ncclSuccess ? queued : result;
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return nccl_call("ncclSend", [&] {
    if (!grouped) refuse(ncclInvalidUsage, "the fake sends in groups only");
    add(comm, stream, {true, from, nullptr, bytes_of(count, type), peer});
  });
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return nccl_call("ncclRecv", [&] {
    if (!grouped) refuse(ncclInvalidUsage, "the fake receives in groups only");
    add(comm, stream, {false, nullptr, to, bytes_of(count, type), peer});
  });
}

ncclResult_t ncclAllGather(const void* mine, void* all, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  ncclResult_t queued = ncclSuccess;
  const ncclResult_t result = nccl_call("ncclAllGather", [&] {
    const size_t bytes = bytes_of(count, type);
    require_comm(comm);
    for (int peer = 0; peer < comm->ranks; ++peer) {
      add(comm, stream, {true, mine, nullptr, bytes, peer});
      add(comm, stream,
          {false, nullptr, static_cast<std::byte*>(all) + static_cast<size_t>(peer) * bytes, bytes, peer});
    }
    queued = queue_group();
  });
  return result == ncclSuccess ? queued : result;
}
