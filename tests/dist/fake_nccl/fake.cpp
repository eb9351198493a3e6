#include "fake.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "tensor/device_cuda.h"
#include "tensor/errors.h"

struct CUstream_st {
  const std::atomic<int>* busy = nullptr;  // of the communicator whose call is being queued here
};
struct CUevent_st {};

namespace fake_nccl {

using Bytes = std::vector<std::byte>;

// The ranks that share an id. What is on its way lies in a box per pair of ranks.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  int here = 0;
  bool broken = false;
  std::map<std::pair<int, int>, std::deque<Bytes>> boxes;
};

}  // namespace fake_nccl

namespace {

using fake_nccl::Bytes, fake_nccl::World;

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<World>> worlds;

size_t size_of(ncclDataType_t type) { return type == ncclFloat ? 4 : 1; }

struct Transfer {
  bool sends;
  const void* from;
  void* to;
  size_t bytes;
  int peer;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<fake_nccl::World> world;
  int rank, ranks;
  std::atomic<int> busy{5};  // so often is it "in progress" when asked
  bool started = false;
};

namespace {

thread_local bool grouped = false;
thread_local std::vector<Transfer> transfers;
thread_local ncclComm_t group_comm = nullptr;

ncclResult_t carry_out(ncclComm_t comm) {
  World& world = *comm->world;
  std::unique_lock lock(world.mutex);
  for (const Transfer& t : transfers) {
    if (!t.sends) continue;
    const auto* from = static_cast<const std::byte*>(t.from);
    world.boxes[{comm->rank, t.peer}].emplace_back(from, from + t.bytes);
  }
  world.changed.notify_all();
  ncclResult_t result = ncclInProgress;
  for (const Transfer& t : transfers) {
    if (t.sends) continue;
    auto& box = world.boxes[{t.peer, comm->rank}];
    world.changed.wait(lock, [&] { return !box.empty() || world.broken; });
    if (box.empty()) return ncclRemoteError;
    if (box.front().size() != t.bytes) result = ncclInvalidUsage;
    if (box.front().size() == t.bytes) std::memcpy(t.to, box.front().data(), t.bytes);
    box.pop_front();
  }
  return result;
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const Transfer& transfer) {
  if (comm->busy > 0 || transfer.bytes == 0) return ncclInvalidUsage;
  stream->busy = &comm->busy;
  group_comm = comm;
  transfers.push_back(transfer);
  return ncclSuccess;
}

ncclResult_t finish_group() {
  grouped = false;
  if (group_comm == nullptr) return ncclSuccess;
  const ncclResult_t result = carry_out(group_comm);
  group_comm->busy = 3;
  group_comm = nullptr;
  transfers.clear();
  return result;
}

}  // namespace

Fake& fake() {
  static Fake one;
  return one;
}
void reset_fake() {
  fake().start = ncclSuccess;
  fake().ill_rank = -1;
  fake().graphs = 0;
  fake().finalized = fake().destroyed = fake().aborted = 0;
}
std::vector<std::string>& calls() {
  thread_local std::vector<std::string> own;
  return own;
}

std::vector<cudaStream_t>& streams() {
  thread_local std::vector<cudaStream_t> own;
  return own;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t, unsigned) {
  calls().push_back("wait");
  streams().push_back(stream);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t stream) {
  if (stream->busy != nullptr && *stream->busy > 0) return cudaErrorInvalidValue;  // it would overtake the call
  calls().push_back("record");
  streams().push_back(stream);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> next = 1;
  *id = {};
  std::memcpy(id->internal, &next, sizeof(int));
  ++next;
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) return ncclInvalidUsage;
  const std::lock_guard lock(worlds_mutex);
  auto& world = worlds[std::string(id.internal, sizeof(id.internal))];
  if (world == nullptr) world = std::make_shared<World>();
  *comm = new ncclComm{world, rank, ranks};
  const std::lock_guard world_lock(world->mutex);
  ++world->here;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(comm->world->mutex);
  if (!comm->started) {
    if (fake().start != ncclSuccess) {
      *state = fake().start;
      return ncclSuccess;
    }
    comm->started = comm->world->here == comm->ranks;
  }
  const bool busy = !comm->started || comm->busy > 0;
  if (comm->started && comm->busy > 0) --comm->busy;
  *state = busy ? ncclInProgress : comm->rank == fake().ill_rank ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  ++fake().finalized;
  comm->busy = 2;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  ++fake().destroyed;
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ++fake().aborted;
  {
    const std::lock_guard lock(comm->world->mutex);
    comm->world->broken = true;
    comm->world->changed.notify_all();
  }
  while (fake().graphs > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  delete comm;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "invalid usage";
}
const char* ncclGetLastError(ncclComm_t) {
  return fake().start == ncclInvalidUsage ? "Duplicate GPU detected : rank 1 and rank 0" : "";
}
ncclResult_t ncclAllGather(const void* mine, void* all, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  calls().push_back("all_gather");
  const size_t bytes = count * size_of(type);
  ncclResult_t result = ncclSuccess;
  for (int peer = 0; peer < comm->ranks && result == ncclSuccess; ++peer) {
    result = add(comm, stream, {true, mine, nullptr, bytes, peer});
    auto* to = static_cast<std::byte*>(all) + static_cast<size_t>(peer) * bytes;
    if (result == ncclSuccess) result = add(comm, stream, {false, nullptr, to, bytes, peer});
  }
  return result == ncclSuccess ? finish_group() : result;
}
ncclResult_t ncclGroupStart() {
  calls().push_back("group");
  grouped = true;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return finish_group(); }
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return grouped ? add(comm, stream, {true, from, nullptr, count * size_of(type), peer}) : ncclInvalidUsage;
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return grouped ? add(comm, stream, {false, nullptr, to, count * size_of(type), peer}) : ncclInvalidUsage;
}

// A GPU whose memory is the host's.
namespace dgc {

namespace {
const std::shared_ptr<Device>& host() {
  static const std::shared_ptr<Device> device = make_cpu_device();
  return device;
}
}  // namespace

CudaDevice::CudaDevice(int index) : index_(index), memory_(std::make_shared<Memory>()), stream_(new CUstream_st) {}
std::shared_ptr<CudaDevice> CudaDevice::make_beside() const { return std::make_shared<CudaDevice>(index_); }
CudaDevice::~CudaDevice() { delete stream_; }
void CudaDevice::use() const {}
std::string CudaDevice::name() const { return fmt::format("cuda:{}", index_); }
std::string CudaDevice::bus_address() const { return ""; }
void* CudaDevice::allocate(size_t bytes) { return host()->allocate(bytes); }
void CudaDevice::free(void* memory, size_t bytes) noexcept { host()->free(memory, bytes); }
void CudaDevice::copy_in(void* to, const void* from, size_t bytes) { host()->copy_in(to, from, bytes); }
void CudaDevice::copy_out(void* to, const void* from, size_t bytes) { host()->copy_out(to, from, bytes); }
void CudaDevice::copy(void* to, const void* from, size_t bytes) { host()->copy(to, from, bytes); }
void CudaDevice::zero(void* memory, size_t bytes) { host()->zero(memory, bytes); }
void CudaDevice::synchronize() {}
std::unique_ptr<Upload> CudaDevice::make_upload(size_t bytes) { return host()->make_upload(bytes); }
std::unique_ptr<Download> CudaDevice::make_download(size_t bytes) { return host()->make_download(bytes); }
std::unique_ptr<HostMemory> CudaDevice::make_host_memory(size_t bytes) { return host()->make_host_memory(bytes); }
std::unique_ptr<Stopwatch> CudaDevice::make_stopwatch() { return host()->make_stopwatch(); }
void check_cuda(int error, const char* call) { DGC_CHECK(error == 0, call); }

}  // namespace dgc
