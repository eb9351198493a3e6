#include "train/ranks/on_ranks.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "dist/meeting/interfaces.h"
#include "dist/meeting/open_files.h"
#include "dist/meeting/rendezvous.h"
#include "dist/meeting/watch.h"
#include "tensor/errors.h"
#include "tensor/machine_name.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"
#include "train/ranks/launched_config.h"
#include "train/ranks/meeting.h"
#include "train/ranks/rank_backend.h"

namespace dgc {
namespace {

// A GPU's machine and address. The machine is told by the number of its start, which containers on it share and no
// other machine has. An empty name: this rank has no GPU, or NCCL is not in this build.
struct Gpu {
  std::array<char, 256> name{};
  auto operator<=>(const Gpu&) const = default;
};

std::string machine_number() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string number;
  return std::getline(file, number) ? number : machine_name();
}

Gpu gpu_of(const Device& device) {
  Gpu gpu;
  const std::string address = nccl_description().empty() ? "" : device.bus_address();
  if (address.empty()) return gpu;
  fmt::format_to_n(gpu.name.data(), gpu.name.size() - 1, "{} {}", machine_number(), address);
  return gpu;
}

// Whether NCCL can connect the ranks: each needs a GPU of its own. Collective.
bool each_has_own_gpu(Communicator& peers, const Device& device) {
  const Gpu mine = gpu_of(device);
  const std::vector<Gpu> all = gather_host<Gpu>(peers, *make_cpu_device(), {&mine, 1});
  return std::set<Gpu>(all.begin(), all.end()).size() == all.size() && std::ranges::count(all, Gpu{}) == 0;
}

void on_threads(const Config& config, const Launch& launch, const RankBody& body) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  if (config.ranks > 1) {
    communicators = make_thread_communicators(static_cast<int>(config.ranks));
  } else {
    communicators.push_back(make_single_communicator());
  }
  run_ranks(communicators, [&](Communicator& communicator) {
    const auto backend = make_backend(config, launch);
    body(*backend, communicator);
  });
}

// When a rank is gone, the communicator reports a symptom; the watch knows the cause.
void with_cause(const Watch& watch, const std::function<void()>& work) {
  try {
    work();
  } catch (const ToldByPeer&) {
    throw;
  } catch (const PeerFailed& error) {
    const std::string cause = watch.cause_of(error.what());
    watch.check();
    throw PeerFailed(cause);
  }
}

// NCCL that cannot connect the ranks may be a symptom as well, of a rank that has died meanwhile.
std::unique_ptr<Communicator> make_watched_nccl(const Launch& launch, std::shared_ptr<Device> device,
                                                const Watch& watch, const NcclOptions& options) {
  try {
    return make_nccl_communicator(launch, std::move(device), options);
  } catch (const UserError& error) {
    watch.cause_of(error.what());
    watch.check();
    throw;
  }
}

// An error of this rank ends all ranks that the watch knows, also ranks that the communicator cannot reach.
void telling(Watch& watch, const std::function<void()>& work) {
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (const PeerFailed&) {
    throw;
  } catch (const ToldError& error) {
    watch.fail(error.what());
    throw;
  } catch (const std::exception& error) {
    watch.fail(complaint(error).text);
    throw;
  }
}

bool meet_over_tcp(const Launch& launch) { return !has_mpi(launch) && !launch.meeting.is_file(); }

// Where rank 0 listens for the heartbeats of the others. Ranks that meet without a secret meet over the loopback.
std::vector<std::string> heartbeat_addresses(const Config& config, const Launch& launch) {
  const std::vector<OwnAddress> all = own_addresses();
  const std::string& interface = config.exchange.interface;
  const bool here = launch.local_size == launch.size || (meet_over_tcp(launch) && !launch.secret.given());
  if (interface.empty()) return here ? kLoopback : distinct_addresses(all);
  // Only MPI always tells how many ranks are here. Over TCP no rank would have come to rank 0's loopback from
  // elsewhere.
  const bool elsewhere = has_mpi(launch) && !here;
  return elsewhere ? addresses_for_other_machines(interface, all) : addresses_of_interface(interface, all);
}

// Checks for the GPU that NCCL needs before this rank waits for others.
std::unique_ptr<Backend> make_connected_backend(const Config& config, const Launch& launch) {
  auto backend = make_backend(config, launch);
  if (config.exchange.communicator == CommunicatorType::nccl) require_nccl(launch, *backend->device());
  return backend;
}

void on_device(const Config& config, const Launch& launch, Communicator& peers, std::unique_ptr<Backend> given,
               const Watch& watch, const NcclOptions& options, const RankBody& body) {
  std::unique_ptr<Communicator> nccl;  // outlives the backend, which may have recorded NCCL's work
  const std::unique_ptr<Backend> backend = std::move(given);
  const auto run = [&](Communicator& communicator) {
    body(*backend, communicator);
    communicator.barrier(*backend->device());  // a finished rank still learns of one that fails at the end
  };
  const CommunicatorType wanted = config.exchange.communicator;
  const bool automatic = wanted == CommunicatorType::automatic;
  // NCCL has all ranks in every exchange.
  const bool takes_mpi = config.exchange.wait || !each_has_own_gpu(peers, *backend->device());
  if (wanted == CommunicatorType::mpi || (automatic && takes_mpi)) return run(peers);
  if (const std::string remark = remark_on_nccl(); launch.rank == 0 && !remark.empty()) spdlog::warn(remark);
  nccl = make_watched_nccl(launch, backend->device(), watch, options);
  as_rank(*nccl, [&] { with_cause(watch, [&] { run(*nccl); }); });
}

void on_this_process(const Config& config, const Launch& launch, Communicator& peers, const RankBody& body) {
  const auto host = make_cpu_device();
  const std::chrono::seconds failure_timeout(config.exchange.failure_timeout_s);
  RendezvousOptions declining;
  declining.timeout = failure_timeout;
  declining.interface = config.exchange.interface;
  std::unique_ptr<Backend> backend;
  or_decline(launch, peers, declining,
             [&] { in_unison(peers, *host, [&] { backend = make_connected_backend(config, launch); }); });
  Patience patience;
  const bool meets = peers.size() == 1;  // MPI's ranks have already met, and stop together
  NcclOptions options;
  options.meeting.interface = config.exchange.interface;
  const auto share = [&](std::span<std::byte> place, const WhileMeeting& while_waiting) {
    if (meets) {
      RendezvousOptions meeting = options.meeting;
      meeting.while_waiting = while_waiting;
      return share_from_rank0(launch, meeting, place);
    }
    const std::vector<std::byte> all = gather_host<std::byte>(peers, *host, place);
    std::copy_n(all.begin(), place.size(), place.begin());
  };
  WatchOptions watched{launch.rank, launch.size, failure_timeout};
  if (meets) watched.while_waiting = std::ref(patience);
  std::optional<Watch> watch;
  const auto meet = [&] {
    const bool listens = launch.rank == 0 && launch.size > 1 && failure_timeout.count() > 0;
    if (listens) require_open_files(launch.size, meet_over_tcp(launch) ? 2 : 1);
    if (launch.rank == 0) watched.listen_at = heartbeat_addresses(config, launch);
    if (meet_over_tcp(launch)) watched.met_at = launch.meeting.host;
    watch.emplace(watched, share);
  };
  // Only rank 0 declines, because a rank that comes late asks rank 0.
  launch.rank == 0 ? or_decline(launch, peers, declining, meet) : meet();
  options.meeting.while_waiting = [&](const std::string& waiting) { watch->look_around(waiting); };
  const auto watched_peers = make_peers(launch, [&] { watch->check(); });
  options.while_waiting = [&] {
    watched_peers->check();
    watch->check();
  };
  options.failure = [&] { return watch->failure(); };
  if (watched_peers->size() > 1) options.peers = watched_peers.get();
  telling(*watch, [&] {
    as_rank(*watched_peers, [&] {
      with_cause(*watch, [&] { on_device(config, launch, *watched_peers, std::move(backend), *watch, options, body); });
    });
  });
}

}  // namespace

std::unique_ptr<Communicator> make_peers(const Launch& launch, WhileWaiting while_waiting) {
  if (launch.size > 1) raise_open_files();
  if (launch.size == 1 || !has_mpi(launch)) return make_single_communicator();
  MpiOptions options;
  options.while_waiting = std::move(while_waiting);
  return make_mpi_communicator(launch, std::move(options));
}

void on_ranks(const Config& config, const Launch& launch, Communicator& peers, const RankBody& body) {
  if (launch.size > 1 || config.exchange.communicator == CommunicatorType::nccl) {
    on_this_process(config, launch, peers, body);
  } else {
    on_threads(config, launch, body);
  }
}

void on_ranks(const Config& config, const Launch& launch, const RankBody& body) {
  const auto peers = make_peers(launch);
  as_rank(*peers, [&] { on_ranks(config, launch, *peers, body); });
}

}  // namespace dgc
