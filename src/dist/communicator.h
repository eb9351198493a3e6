#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "dist/rendezvous.h"
#include "tensor/device.h"

namespace dgc {

struct Launch;

// Thrown out of a collective when another rank has failed; says which and why. The cause is reported by that rank.
struct PeerFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The same, where that rank itself says why, so that nobody else need.
struct ToldByPeer : PeerFailed {
  ToldByPeer(const std::string& what, bool is_users) : PeerFailed(what), users(is_users) {}
  bool users;  // a UserError, there; false where that is not known
};

// Ranks at equal distances.
struct Ranks {
  int first = 0, size = 1, stride = 1;
  int at(int i) const { return first + i * stride; }
  auto operator<=>(const Ranks&) const = default;
};

// How the ranks of a run talk. One object per rank, used by one thread. Every call but rank(), size(), recordable(),
// between_processes(), split(), check() and abort() is a collective: all ranks make the same calls in the same order
// with the same sizes. Throws PeerFailed as soon as any rank has called abort().
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string name() const = 0;  // "single", "threads", "mpi", "nccl"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool between_processes() const = 0;  // false: all ranks are threads of this process

  // True: the two calls below are queued on the device like any other work, so a step with them can be recorded.
  // False: they wait for the device, and are done when they return.
  virtual bool recordable() const = 0;

  // On memory of the device, in its order of work. all = the ranks' parts in rank order, `bytes` each. `mine` must not
  // lie inside `all`.
  virtual void all_gather(Device&, const void* mine, void* all, size_t bytes) = 0;

  // Shard r of every worker's n floats goes to rank r: mine [all workers][shard_size(n, size())] in worker order (rank
  // 0's workers first). Every rank brings as many workers as the others. What lies behind n in a last row is undefined.
  virtual void gather_shards(Device&, std::span<const float* const> local_workers, float* mine, size_t n) = 0;

  virtual void barrier(Device&) = 0;  // returns when all ranks are here

  // Some ranks among themselves, this one with them, numbered in their order: collectives there are theirs alone. This
  // communicator must outlive it, and both are used by one thread; they fail together, for all ranks of either.
  virtual std::unique_ptr<Communicator> split(const Ranks&) = 0;

  // Looks for failures that nobody waits for; to be called while waiting for results of queued collectives.
  virtual void check() {}

  // This rank cannot go on: every collective of the others throws from now on. The first reason wins.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// Elements of one rank's shard: n / ranks, rounded up to a multiple of 16.
size_t shard_size(size_t n, int ranks);

// The same for host memory, for what is small and rare: it waits for the device.
void all_gather_host(Communicator&, Device&, std::span<const std::byte> mine, std::span<std::byte> all);

std::unique_ptr<Communicator> make_single_communicator();

// Ranks that are threads of this process, [i] for rank i.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int ranks);

// Called again and again while a communicator waits; throws PeerFailed to end that, and with it the communicator.
using WhileWaiting = std::function<void()>;

struct MpiOptions {
  size_t piece_bytes = size_t{1} << 30;  // longer messages travel in pieces, as MPI counts with an int
  WhileWaiting while_waiting = [] {};
};

// Ranks that are processes, started by mpirun, or by srun with PMIx (Launch::mpi). They compute on any device: what
// lies on a GPU crosses the host's memory, so that ranks may share one. MPI is initialised with the first communicator
// and finalised with the last, unless a rank has failed. Collective. Throws UserError when MPI has started other ranks
// than `launch` says, or is not in this build.
std::unique_ptr<Communicator> make_mpi_communicator(const Launch&, MpiOptions = {});
std::string mpi_description();  // its version; empty when it is not in this build

struct NcclOptions {
  Communicator* peers = nullptr;  // the same ranks, where they can talk already: over it they meet, else as launch says
  RendezvousOptions meeting;      // its timeout is also that of NCCL's start
  std::chrono::milliseconds barrier_timeout = std::chrono::minutes(30);
  WhileWaiting while_waiting = [] {};
};

// Ranks that are processes with a GPU each. Throws UserError when the device is no GPU,
// when ranks share one (workers_per_rank is the way), when NCCL cannot connect them, or is not in this build. What was
// recorded with it must be gone before it is.
std::unique_ptr<Communicator> make_nccl_communicator(const Launch&, std::shared_ptr<Device>, const NcclOptions&);
// Throws UserError where that one would whoever the others are: this device is no GPU, or NCCL is not in this build.
void require_nccl(const Launch&, const Device&);
std::string nccl_description();  // its version; empty when it is not in this build

// Runs `body` once per communicator, each in a thread of its own, and joins them all. When one throws, the others are
// aborted, and the exception of the rank that failed first leaves this function.
void run_ranks(std::span<const std::unique_ptr<Communicator>> communicators,
               const std::function<void(Communicator&)>& body);

}  // namespace dgc
