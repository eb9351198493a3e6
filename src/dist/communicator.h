#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "dist/mail.h"
#include "dist/meeting/rendezvous.h"
#include "dist/peer_failed.h"
#include "tensor/device.h"

namespace dgc {

struct Launch;

// A group of ranks at equal distances: first, first + stride, ..., `size` of them.
struct Ranks {
  int first = 0, size = 1, stride = 1;
  int at(int i) const { return first + i * stride; }
  auto operator<=>(const Ranks&) const = default;
};

// How the ranks of a run talk. One object per rank, used by one thread. Every call but name(), rank(), size(),
// recordable(), between_processes(), split(), mail(), check() and abort() is a collective: all ranks make the same
// calls in the same order with the same sizes. A collective throws PeerFailed as soon as any rank has called abort().
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string name() const = 0;  // "single", "threads", "mpi", "nccl", "planning"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool between_processes() const = 0;  // false: all ranks are threads of this process

  // True: all_gather() and gather_shards() are queued on the device like any other work, so a step with them can be
  // recorded. False: both wait for the device, and are done when they return.
  virtual bool recordable() const = 0;

  // Works on memory of the device, in the device's order of work. all: the ranks' parts in rank order, `bytes` each.
  // `mine` must not lie inside `all`.
  virtual void all_gather(Device&, const void* mine, void* all, size_t bytes) = 0;

  // Rank r receives shard r of every worker's n floats: mine is [all workers][shard_size(n, size())] in worker order,
  // rank 0's workers first. All ranks pass equally many workers. Elements of a shard that lie beyond n are undefined.
  virtual void gather_shards(Device&, std::span<const float* const> local_workers, float* mine, size_t n) = 0;

  virtual void barrier(Device&) = 0;  // returns when all ranks are here

  // Makes a communicator of some ranks, among them this one, numbered in their order. Its collectives are among those
  // ranks alone. This communicator must outlive the new one, and one thread uses both. A failure of either fails both,
  // on all ranks.
  virtual std::unique_ptr<Communicator> split(const Ranks&) = 0;

  virtual Mail* mail() { return nullptr; }  // null: this communicator carries no letters

  // Throws PeerFailed when a failure is known. To be called while waiting for results of queued collectives, and once
  // more when they are there where recordable() is true: a collective that a failure has ended leaves anything behind.
  virtual void check() {}

  // Declares that this rank cannot go on: every collective of the other ranks throws from now on. The first reason
  // wins.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// Elements of one rank's shard: n / ranks, rounded up to a multiple of 16.
size_t shard_size(size_t n, int ranks);

// Rows of halves travel as floats, which communicators move and do not look at.
inline constexpr int64_t kHalvesPerFloat = 2;

// all_gather() for host memory. It waits for the device, so it is for small and rare data.
void all_gather_host(Communicator&, Device&, std::span<const std::byte> mine, std::span<std::byte> all);

// Returns what all ranks pass, equally many elements each, in rank order.
template <typename T>
std::vector<T> gather_host(Communicator& communicator, Device& device, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(mine.size() * static_cast<size_t>(communicator.size()));
  all_gather_host(communicator, device, std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

// Device::copy_out() of what a collective writes, for small and rare data. Waiting in the driver would not notice that
// another rank is gone.
void copy_out(Communicator&, Device&, std::span<std::byte> to, const void* from);

std::unique_ptr<Communicator> make_single_communicator();
// Rank 0's communicator in a run of `ranks` ranks that are not there: it moves nothing. For planning what a rank needs.
std::unique_ptr<Communicator> make_planning_communicator(int ranks);

// Connects ranks that are threads of this process. Element i is rank i's communicator.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int ranks);

// Called again and again while a communicator waits. A PeerFailed that it throws ends the wait and the communicator.
using WhileWaiting = std::function<void()>;

struct MpiOptions {
  size_t piece_bytes = size_t{1} << 30;  // longer messages travel in pieces, as MPI counts with an int
  WhileWaiting while_waiting = [] {};
};

// Connects ranks that are processes, started by mpirun, or by srun with PMIx (Launch::mpi). Ranks compute on any
// device: data on a GPU cross the host's memory, so that ranks may share a GPU. MPI is initialised with the first
// communicator and finalised with the last, unless a rank has failed. Collective. Throws UserError when MPI has started
// other ranks than `launch` says, or when this build has no MPI.
std::unique_ptr<Communicator> make_mpi_communicator(const Launch&, MpiOptions = {});
std::string mpi_description();  // MPI's version; empty when this build has no MPI

// The failure of another rank, once one is known. May be called from any thread.
using KnownFailure = std::function<std::optional<std::string>()>;

struct NcclOptions {
  Communicator* peers = nullptr;  // connects the same ranks, which meet over it; null: they meet as `launch` says
  RendezvousOptions meeting;      // its timeout also limits NCCL's start
  WhileWaiting while_waiting = [] {};
  // A thread of the communicator asks it again and again, and ends the communicator after a failure: also while the
  // rank waits in the driver, which calls nothing of the above.
  KnownFailure failure = [] { return std::nullopt; };
};

// Connects ranks that are processes with a GPU each. Throws UserError when the device is no GPU, when ranks share a GPU
// (workers_per_rank is the way), when NCCL cannot connect the ranks, or when this build has no NCCL. A recording of its
// collectives must be destroyed before the communicator.
std::unique_ptr<Communicator> make_nccl_communicator(const Launch&, std::shared_ptr<Device>, const NcclOptions&);
// Throws those UserErrors of make_nccl_communicator() that depend on no other rank: this device is no GPU, or this
// build has no NCCL.
void require_nccl(const Launch&, const Device&);
std::string nccl_description();  // NCCL's version; empty when this build has no NCCL
std::string remark_on_nccl();    // a sentence on what this version of NCCL may do; empty: nothing is known

// Runs `body` once per communicator, each in a thread of its own, and joins them all. When one throws, the others are
// aborted, and the exception of the rank that failed first leaves this function.
void run_ranks(std::span<const std::unique_ptr<Communicator>> communicators,
               const std::function<void(Communicator&)>& body);

}  // namespace dgc
