// NCCL between processes, one GPU each. The communicator is non-blocking: every call returns at once, and its outcome
// is polled until it is known, so that a dead peer ends in an error and not in a hang. Collectives run on a stream of
// the communicator, which is forked from the calling device's stream (a lane has another one) and joined to it by
// events; all of this can be captured in a CUDA graph. On the one stream, collectives run in the order of the calls,
// whichever device makes them. NCCL reports a peer that died behind a network. It may not notice a peer that died on
// the same machine, or one that is stopped; NcclOptions::while_waiting is for these. A rank may also wait in the
// driver, where it asks nobody, behind a collective that a dead peer never joins; NcclOptions::failure is for that.
#include <nccl.h>  // includes cuda_runtime.h
#include <stdlib.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "dist/launch/launch.h"
#include "dist/meeting/rendezvous.h"
#include "dist/transfers.h"
#include "dist/whole_communicator.h"
#include "tensor/device_cuda.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

bool went_wrong(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }

std::string describe(ncclResult_t result, ncclComm_t comm) {
  const char* more = ncclGetLastError(comm);
  std::string text = ncclGetErrorString(result);
  if (more != nullptr && *more != '\0') text += fmt::format(" ({})", more);
  std::erase(text, '\n');
  return text;
}

// What has become of the last call so far.
ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  return asked != ncclSuccess ? asked : state;
}

// The outcome of the last call, of which `ask` tells the state; ncclInProgress when the call takes longer than the
// timeout.
template <typename Ask>
ncclResult_t outcome(const Ask& ask, milliseconds timeout, const WhileWaiting& while_waiting) {
  auto before = Clock::now();
  auto deadline = before + timeout;
  while (true) {
    const ncclResult_t state = ask();
    const auto now = Clock::now();
    if (now - before > std::chrono::seconds(1)) deadline += now - before;  // the process was stopped meanwhile
    before = now;
    if (state != ncclInProgress || now >= deadline) return state;
    while_waiting();
    std::this_thread::sleep_for(microseconds(20));
  }
}

[[noreturn]] void throw_no_start(const Launch& launch, const CudaDevice& device, const std::string& why) {
  constexpr std::string_view kShared = "Duplicate GPU";  // NCCL's words
  if (why.find(kShared) != std::string::npos) {
    throw_user_error(
        "rank {} of {} shares {} with another rank, which NCCL refuses: start one rank per GPU, and set "
        "workers_per_rank to run several workers on it",
        launch.rank, launch.size, device.name());
  }
  throw_user_error("rank {} of {} on {}: NCCL cannot connect the ranks: {}; NCCL_DEBUG=INFO tells more", launch.rank,
                   launch.size, device.name(), why);
}

// Keeps NCCL from registering the buffers of what is recorded. Registrations are kept by address, and recordings may
// outlive buffers. And where the network reads and writes registered memory, a replayed graph of a small and a large
// all-gather may wait for ever (NVIDIA/nccl, issue 2389; mended in NCCL's sources in September 2026). The environment
// has the last word.
void register_no_recorded_buffers() { setenv("NCCL_GRAPH_REGISTER", "0", 0); }

// NCCL lets this variable, which its own configuration file may set, overrule what ncclConfig_t says.
void block_in_no_call() { setenv("NCCL_COMM_BLOCKING", "0", 1); }

ncclComm_t connect(const Launch& launch, const CudaDevice& device, const NcclOptions& options) {
  register_no_recorded_buffers();
  block_in_no_call();
  ncclUniqueId id{};
  if (launch.rank == 0) {
    const ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess) throw_no_start(launch, device, describe(result, nullptr));
  }
  if (options.peers != nullptr) {
    id = gather_host<ncclUniqueId>(*options.peers, *make_cpu_device(), {&id, 1})[0];
  } else {
    share_from_rank0(launch, options.meeting, std::as_writable_bytes(std::span(&id, 1)));
  }

  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  ncclResult_t result = ncclCommInitRankConfig(&comm, launch.size, id, launch.rank, &config);
  try {
    const auto look = [&] { options.meeting.while_waiting(fmt::format("rank {} waits for NCCL", launch.rank)); };
    if (!went_wrong(result)) result = outcome([&] { return state_of(comm); }, options.meeting.timeout, look);
  } catch (const std::exception&) {
    ncclCommAbort(comm);
    throw;
  }
  if (result == ncclSuccess) return comm;
  const std::string why = result == ncclInProgress
                              ? fmt::format("after {:g} s they are not all there",
                                            std::chrono::duration<double>(options.meeting.timeout).count())
                              : describe(result, comm);
  if (comm != nullptr) ncclCommAbort(comm);
  throw_no_start(launch, device, why);
}

class NcclCommunicator final : public WholeCommunicator {
 public:
  NcclCommunicator(const Launch& launch, std::shared_ptr<CudaDevice> device, const NcclOptions& options)
      : device_(std::move(device)),
        rank_(launch.rank),
        size_(launch.size),
        while_waiting_(options.while_waiting),
        present_(device_, static_cast<size_t>(launch.size) + 1) {}

  // start() is apart from the constructor, so that the destructor clears up after a failure in it.
  void start(const Launch& launch, const NcclOptions& options) {
    device_->use();
    int least = 0, most = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, most), "cudaStreamCreateWithPriority");
    check_cuda(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    check_cuda(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    comm_ = connect(launch, *device_, options);
    watching_ = std::jthread(
        [this, failure = options.failure](const std::stop_token& stop) { end_after_failure(stop, failure); });
  }

  ~NcclCommunicator() override {
    watching_ = {};  // joins it, so that only this thread uses comm_ from here on
    try {
      device_->use();
    } catch (const std::exception&) {
      // A GPU that has failed refuses this call as well. What was made is given back all the same.
    }
    // A rank that leaves because of an exception must not wait long for ranks that do not follow.
    constexpr milliseconds kPatience(10000);
    if (comm_ != nullptr) {
      const auto state = [&] { return state_of(comm_); };
      const bool flushed = !went_wrong(ncclCommFinalize(comm_)) && outcome(state, kPatience, [] {}) == ncclSuccess;
      if (flushed) {
        ncclCommDestroy(comm_);
      } else {
        end("the communicator is given up");
      }
    }
    // With a rank that was killed NCCL may never return (NVIDIA/nccl, issue 1777). Then the stream and the thread stay
    // as they are until the process ends.
    if (aborting_.joinable() && aborted_.wait_for(kPatience) != std::future_status::ready) {
      aborting_.detach();
      return;
    }
    if (aborting_.joinable()) aborting_.join();
    if (forked_ != nullptr) cudaEventDestroy(forked_);
    if (joined_ != nullptr) cudaEventDestroy(joined_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  std::string name() const override { return "nccl"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool between_processes() const override { return true; }
  bool recordable() const override { return true; }

  // Some of the ranks gather by sends and receives among themselves: no communicator of their own need be made, and
  // failures are noticed in one place.
  void all_gather_among(const Ranks& ranks, Device& device, const void* mine, void* all, size_t bytes) override {
    if (bytes == 0) return;
    queue(device, "all_gather", [&](ncclComm_t comm) {
      if (ranks == everyone()) return ncclAllGather(mine, all, bytes, ncclInt8, comm, stream_);
      return exchange(comm, all_gather_transfers(ranks, mine, all, bytes));
    });
  }

  void gather_shards_among(const Ranks& ranks, Device& device, std::span<const float* const> local_workers, float* mine,
                           size_t n) override {
    DGC_CHECK(!local_workers.empty(), "a rank without workers");
    if (n == 0) return;
    const int place = place_among(ranks, rank_);
    queue(device, "gather_shards",
          [&](ncclComm_t comm) { return exchange(comm, shard_transfers(place, ranks, local_workers, mine, n)); });
  }

  void barrier_among(const Ranks& ranks, Device& device) override {
    auto* present = static_cast<std::byte*>(present_.data());
    all_gather_among(ranks, device, present, present + 1, 1);
    // The event arrives as well when the communicator is ended. So check() comes after the query.
    while (true) {
      const cudaError_t arrived = cudaEventQuery(joined_);
      if (arrived != cudaErrorNotReady) check_cuda(arrived, "cudaEventQuery in a barrier of NCCL");
      check();
      if (arrived == cudaSuccess) return;
      std::this_thread::sleep_for(microseconds(50));
    }
  }

  void check() override {
    listen();  // comes first, as it also tells whether the failed rank reports the failure itself
    const ncclResult_t state = with_comm(state_of);
    if (went_wrong(state)) fail(last_, describe_last(state));
  }

  void abort(const std::string& reason) noexcept override { end(fmt::format("rank {} failed: {}", rank_, reason)); }

 private:
  // Calls `call` with the communicator, which no other thread ends meanwhile. So what is called must not wait: NCCL's
  // calls do not, as threads of NCCL's take over what would.
  template <typename Call>
  std::invoke_result_t<const Call&, ncclComm_t> with_comm(const Call& call) {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) throw PeerFailed(failure_);
    return call(comm_);
  }

  // Ends what NCCL runs on the GPU, for the reason of the first call, which every later use of the communicator tells.
  // May be called from any thread. Since NCCL 2.26 ncclCommAbort ends it at once, but returns only when no recorded
  // graph holds the communicator any more. The graphs belong to the backend, which cannot go before this rank's thread
  // has left the step; so another thread waits for them, and the destructor of this object, which outlives the backend,
  // for the thread, though not for ever.
  void end(const std::string& reason) noexcept {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    failure_ = reason;
    std::packaged_task<void()> abort([comm = std::exchange(comm_, nullptr)] { ncclCommAbort(comm); });
    aborted_ = abort.get_future();
    aborting_ = std::jthread(std::move(abort));
  }

  // Why NCCL itself has failed; nothing: it has not, or it has been ended.
  std::optional<std::string> own_failure() {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return std::nullopt;
    const ncclResult_t state = state_of(comm_);
    if (!went_wrong(state)) return std::nullopt;
    return fmt::format("rank {}: {} failed: {}", rank_, last_, describe(state, comm_));
  }

  // What watching_ does. This rank's thread may be waiting in the driver behind a collective that will never be done,
  // as another rank has failed, or the network. Once that has ended, the driver returns, and the rank meets the failure
  // at the next use of the communicator.
  void end_after_failure(const std::stop_token& stop, const KnownFailure& failure) {
    constexpr milliseconds kBetweenLooks(100);
    std::mutex own;
    std::unique_lock lock(own);
    std::condition_variable_any stopped;
    while (!stop.stop_requested()) {
      if (const auto reason = failure()) return end(*reason);
      if (const auto reason = own_failure()) return end(*reason);
      stopped.wait_for(lock, stop, kBetweenLooks, [] { return false; });
    }
  }

  // Queues a call of NCCL's between the device's earlier and later work.
  template <typename Call>
  void queue(const Device& device, const char* what, const Call& call) {
    const auto* const asks = dynamic_cast<const CudaDevice*>(&device);
    DGC_CHECK(asks != nullptr && asks->is_same_gpu(*device_), "a communicator of NCCL belongs to one GPU");
    with_comm([&](ncclComm_t) { last_ = what; });  // throws once the communicator has been ended
    check_cuda(cudaEventRecord(forked_, asks->stream()), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(stream_, forked_, 0), "cudaStreamWaitEvent");
    ncclResult_t result = with_comm(call);
    // A thread of NCCL's may still be queueing the call, which later work must not overtake.
    constexpr milliseconds kQueueing = std::chrono::minutes(5);
    const auto state = [this] { return with_comm(state_of); };
    if (!went_wrong(result)) result = outcome(state, kQueueing, [this] { listen(); });
    if (result == ncclInProgress) fail(what, "timed out while being queued");
    if (result != ncclSuccess) fail(what, describe_last(result));
    check_cuda(cudaEventRecord(joined_, stream_), "cudaEventRecord");
    check_cuda(cudaStreamWaitEvent(asks->stream(), joined_, 0), "cudaStreamWaitEvent");
  }

  // The sends and receives of one NCCL group. Every send has its receive.
  class Group {
   public:
    Group(ncclComm_t comm, cudaStream_t stream) : comm_(comm), stream_(stream), result_(ncclGroupStart()) {}
    void send(const void* from, size_t bytes, int peer) {
      if (bytes > 0) note(ncclSend(from, bytes, ncclInt8, peer, comm_, stream_));
    }
    void receive(void* to, size_t bytes, int peer) {
      if (bytes > 0) note(ncclRecv(to, bytes, ncclInt8, peer, comm_, stream_));
    }
    ncclResult_t start() {
      note(ncclGroupEnd());  // also after an error
      return result_;
    }

   private:
    void note(ncclResult_t one) {
      if (!went_wrong(result_)) result_ = one;
    }
    ncclComm_t comm_;
    cudaStream_t stream_;
    ncclResult_t result_;
  };

  ncclResult_t exchange(ncclComm_t comm, const std::vector<Transfer>& transfers) {
    Group group(comm, stream_);
    for (const Transfer& one : transfers) {
      group.send(one.from, one.out, one.peer);
      group.receive(one.to, one.in, one.peer);
    }
    return group.start();
  }

  void listen() {
    try {
      while_waiting_();
    } catch (const PeerFailed& error) {
      end(error.what());
      throw;
    }
  }

  std::string describe_last(ncclResult_t result) {
    return with_comm([&](ncclComm_t comm) { return describe(result, comm); });
  }

  [[noreturn]] void fail(const std::string& what, const std::string& why) {
    const std::string failure = fmt::format("rank {}: {} failed: {}", rank_, what, why);
    end(failure);
    throw PeerFailed(failure);
  }

  std::shared_ptr<CudaDevice> device_;
  int rank_, size_;
  WhileWaiting while_waiting_;
  Buffer present_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t forked_ = nullptr, joined_ = nullptr;
  // What follows is shared with watching_. mutex_ guards it, but for this rank's own look at last_.
  std::mutex mutex_;
  std::string last_ = "the start";  // the collective that was queued last, by this rank's thread
  ncclComm_t comm_ = nullptr;       // null once ended
  std::string failure_ = "NCCL was not started";
  std::jthread aborting_;
  std::future<void> aborted_;
  std::jthread watching_;
};

}  // namespace

void require_nccl(const Launch& launch, const Device& device) {
  if (dynamic_cast<const CudaDevice*>(&device) != nullptr) return;
  throw_user_error("rank {} of {} computes on {}, but NCCL connects GPUs only: choose another device, or {}",
                   launch.rank, launch.size, device.name(), without_nccl(launch));
}

std::unique_ptr<Communicator> make_nccl_communicator(const Launch& launch, std::shared_ptr<Device> device,
                                                     const NcclOptions& options) {
  require_nccl(launch, *device);
  auto communicator =
      std::make_unique<NcclCommunicator>(launch, std::static_pointer_cast<CudaDevice>(std::move(device)), options);
  communicator->start(launch, options);
  return communicator;
}

std::string nccl_description() {
  int version = 0;
  ncclGetVersion(&version);
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// Before 2.23 NCCL connects two ranks in the call of the first collective, and the caller waits there for its peer;
// and ncclCommAbort of 2.25 may not return. Only 2.28's sources were read throughout.
std::string remark_on_nccl() {
  constexpr int kRead = 22800;
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess || version >= kRead) return "";
  return nccl_description() + ": before NCCL 2.28 ranks may wait for ever for one that has died; install a newer one";
}

}  // namespace dgc
