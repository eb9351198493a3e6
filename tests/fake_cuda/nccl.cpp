// NCCL between ranks that are threads of one process, or processes of one machine. A rank's sends and receives are work
// of its stream: a send leaves a copy of the data, and a receive can run once that copy is there. Calls only queue, and
// are "in progress" for a while.
#include <nccl.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "tests/fake_cuda/runtime.h"

namespace dgc::fake_cuda {
namespace {

namespace fs = std::filesystem;

constexpr int kBusy = 3;  // so often a call is "in progress" when asked

void write_whole(const fs::path& file, const void* data, size_t bytes) {
  const fs::path beside = file.string() + ".new";
  std::ofstream(beside, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes))
      .flush();
  fs::rename(beside, file);
}

}  // namespace

// One rank's view of the ranks that share an id. The id names a folder, where each rank has a file with the number of
// its device, and a message is a file from its sender's call to its receiver's.
class World {
 public:
  World(const ncclUniqueId& id, int rank, int device) : folder_(id.internal), rank_(rank) {
    fs::create_directories(folder_);  // it is gone where the other ranks have given up
    const std::string text = std::to_string(device);
    write_whole(folder_ / fmt::format("rank-{}", rank), text.data(), text.size());
  }

  static ncclUniqueId make_id() {
    ncclUniqueId id{};
    const std::string folder = (fs::temp_directory_path() / "fake_nccl_XXXXXX").string();
    if (folder.size() >= sizeof(id.internal)) refuse(0, "the fake has no room for an id of {}", folder);
    std::ranges::copy(folder, id.internal);
    if (mkdtemp(id.internal) == nullptr) refuse(0, "the fake cannot make {}", folder);
    return id;
  }

  // Kills this process in the place of letting its rank come.
  [[noreturn]] static void die(const ncclUniqueId& id) {
    std::ofstream(fs::path(id.internal) / "broken");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    raise(SIGKILL);
    std::abort();
  }

  // Of all ranks that have come, also of those that have left.
  std::vector<int> devices() const {
    std::vector<int> all;
    for (const fs::path& file : files("rank-")) {
      if (int device = 0; std::ifstream(file) >> device) all.push_back(device);
    }
    return all;
  }
  bool share_a_device() const {
    const std::vector<int> all = devices();
    return std::set<int>(all.begin(), all.end()).size() < all.size();
  }
  // Work may still be queued when all ranks have left.
  bool broken() const { return aborted_ || !fs::exists(folder_) || fs::exists(folder_ / "broken"); }
  void abort() {
    aborted_ = true;
    if (machine().options.aborts_spread) std::ofstream(folder_ / "broken");  // several ranks may do so at once
  }
  // The last rank that leaves takes the folder away.
  void leave() const {
    write_whole(folder_ / fmt::format("left-{}", rank_), "", 0);
    std::error_code gone;
    if (files("left-").size() >= files("rank-").size()) fs::remove_all(folder_, gone);
  }

  // `recording`: the number of the capture, of all with the communicator's work, in which the send was queued, or 0.
  void send(int peer, const void* data, size_t bytes, int64_t recording) {
    std::string text(static_cast<const char*>(data), bytes);
    text.append(reinterpret_cast<const char*>(&recording), sizeof(recording));
    write_whole(message(rank_, peer, sent_[peer]++), text.data(), text.size());
  }
  // Whether so many messages of a peer have arrived and wait.
  bool has(int peer, int64_t count) {
    return count == 0 || fs::exists(message(peer, rank_, received_[peer] + count - 1));
  }
  void receive(int peer, void* data, size_t bytes, int64_t recording) {
    const fs::path file = message(peer, rank_, received_[peer]++);
    int64_t of_peer = 0;
    const size_t sent = fs::file_size(file) - sizeof(of_peer);
    if (sent != bytes) refuse(0, "a rank receives {} of {} bytes", bytes, sent);
    std::ifstream stream(file, std::ios::binary);
    stream.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
    stream.read(reinterpret_cast<char*>(&of_peer), sizeof(of_peer));
    fs::remove(file);
    // NCCL's guide, "Using NCCL with CUDA Graphs": all ranks launch graphs of the same capture, or none does.
    if (of_peer != recording) refuse(0, "a rank meets recording {} of its peer in its own {}", of_peer, recording);
  }

 private:
  std::vector<fs::path> files(const std::string& begin) const {
    std::vector<fs::path> all;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(folder_, gone)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(begin) && !name.ends_with(".new")) all.push_back(entry.path());
    }
    return all;
  }
  fs::path message(int from, int to, int64_t number) const {
    return folder_ / fmt::format("from-{}-to-{}-{}", from, to, number);
  }

  fs::path folder_;
  int rank_;
  bool aborted_ = false;
  std::map<int, int64_t> sent_, received_;  // by peer
};

namespace {

struct Transfer {
  bool sends;
  const void* from;
  void* to;
  size_t bytes;
  int peer;
};

std::string registers;  // what graph_register() returns; guarded by the machine's mutex

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
  std::shared_ptr<dgc::fake_cuda::World> world;  // shared with queued work
  int rank = 0, ranks = 1, busy = dgc::fake_cuda::kBusy;
  std::weak_ptr<dgc::fake_cuda::Capture> capture = {};  // the newest with work of this communicator
  int64_t captures = 0;                                 // so many there have been
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
  const std::shared_ptr<Capture> capture = group_stream->capture;
  if (capture != nullptr && comm->capture.lock() != capture) {
    comm->capture = capture;
    ++comm->captures;
  }
  const int64_t recording = capture != nullptr ? comm->captures : 0;
  Work send{.name = "ncclSend", .owner = comm};
  send.run = [all, world, recording] {
    for (const Transfer& t : all) {
      if (t.sends && !world->broken()) world->send(t.peer, t.from, t.bytes, recording);
    }
  };
  Work receive{.name = "ncclRecv", .owner = comm};
  receive.can_run = [all, world] {
    std::map<int, int64_t> expected;
    for (const Transfer& t : all) expected[t.peer] += t.sends ? 0 : 1;
    return world->broken() ||
           std::ranges::all_of(expected, [&](const auto& from) { return world->has(from.first, from.second); });
  };
  receive.run = [all, world, recording] {
    for (const Transfer& t : all) {
      if (!t.sends && !world->broken()) world->receive(t.peer, t.to, t.bytes, recording);
    }
  };
  machine().enqueue(group_stream, std::move(send));
  machine().enqueue(group_stream, std::move(receive));
  comm->busy = kBusy;
  return ncclInProgress;
}

bool is_recorded(const void* comm) {
  const auto holds = [comm](const auto* graph) {
    return std::ranges::any_of(graph->nodes, [comm](const auto& node) { return node->work.owner == comm; });
  };
  return std::ranges::any_of(machine().executables, holds) || std::ranges::any_of(machine().graphs, holds);
}

}  // namespace
}  // namespace dgc::fake_cuda

std::string dgc::fake_cuda::graph_register() {
  const std::lock_guard lock(machine().mutex);
  return registers;
}

using namespace dgc::fake_cuda;

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return nccl_call("ncclGetUniqueId", [&] { *id = World::make_id(); });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const ncclResult_t result = nccl_call("ncclCommInitRankConfig", [&] {
    if (config->blocking != 0) refuse(ncclInvalidUsage, "the fake does not block");
    const char* const given = std::getenv("NCCL_GRAPH_REGISTER");
    registers = given == nullptr ? "" : given;
    if (rank == machine().options.dying_rank) World::die(id);
    *comm = new ncclComm{std::make_shared<World>(id, rank, current_device()), rank, ranks};
    machine().library_objects.insert(*comm);
  });
  return result == ncclSuccess ? ncclInProgress : result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  return nccl_call("ncclCommGetAsyncError", [&] {
    require_comm(comm);
    const bool starts = comm->world->devices().size() < static_cast<size_t>(comm->ranks);
    const bool in_progress = starts || comm->busy > 0;
    if (in_progress && comm->busy > 0) --comm->busy;
    const bool ill = comm->world->broken() || comm->rank == machine().options.ill_rank;
    *state = ill ? ncclRemoteError : in_progress ? ncclInProgress : ncclSuccess;
    if (!starts && comm->world->share_a_device()) *state = ncclInvalidUsage;
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
    comm->world->leave();
    delete comm;
  });
}

// As NCCL does, the call waits until all graphs with the communicator's work are gone; but not for ever.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return nccl_end("ncclCommAbort", [&] {
    require_comm(comm);
    comm->world->abort();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (is_recorded(comm) && std::chrono::steady_clock::now() < deadline) machine().wait_for_others();
    const bool hangs = is_recorded(comm);
    machine().library_objects.erase(comm);
    comm->world->leave();
    delete comm;
    if (hangs) refuse(ncclInvalidUsage, "the call would wait for ever, as a graph holds the communicator's work");
  });
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "another error of NCCL";
}

const char* ncclGetLastError(ncclComm_t comm) {
  const bool shared = comm != nullptr && comm->world->share_a_device();
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
