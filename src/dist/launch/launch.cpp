#include "dist/launch/launch.h"

#include <cstdint>
#include <cstdlib>

#include "dist/launch/launch_mpi.h"
#include "dist/launch/launch_slurm.h"
#include "dist/launch/launch_variables.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr int64_t kMaxPort = 65535;

// Parses the value of DGC_RENDEZVOUS.
MeetingPoint parse_meeting_point(const std::string& url) {
  constexpr const char* kVariable = "DGC_RENDEZVOUS";
  MeetingPoint point;
  if (url.starts_with("file://")) {
    point.path = url.substr(7);
    if (!point.path.starts_with('/') || point.path.ends_with('/')) {
      throw_user_error("{}={} names no file: write file:///path/name, on a file system that all ranks share", kVariable,
                       url);
    }
    return point;
  }
  const size_t colon = url.rfind(':');
  if (!url.starts_with("tcp://") || colon == std::string::npos || colon <= 6) {
    throw_user_error("{}={} is neither tcp://host:port nor file:///path/name", kVariable, url);
  }
  point.host = url.substr(6, colon - 6);
  if (point.host.starts_with('[') && point.host.ends_with(']')) {
    point.host = point.host.substr(1, point.host.size() - 2);
  } else if (point.host.find(':') != std::string::npos) {
    throw_user_error("{}={}: an IPv6 address needs brackets, as in tcp://[::1]:29400", kVariable, url);
  }
  if (point.host.empty()) throw_user_error("{}={} lacks the host in tcp://host:port", kVariable, url);
  point.port = static_cast<int>(
      environment_number(fmt::format("{}={}: port", kVariable, url), url.substr(colon + 1), 1, kMaxPort));
  return point;
}

// torchrun's own store may hold MASTER_PORT as long as torchrun runs, which TORCHELASTIC_USE_AGENT_STORE says: then the
// ranks meet at the next port.
std::optional<MeetingPoint> master(const Environment& get) {
  const auto host = get("MASTER_ADDR"), port = get("MASTER_PORT");
  if (!host && !port) return {};
  if (!host) throw_user_error("MASTER_PORT is set, but MASTER_ADDR is not: it is the host of rank 0");
  if (!port) throw_user_error("MASTER_ADDR is set, but MASTER_PORT is not: it is a free port on that host");
  MeetingPoint point;
  point.variable = "MASTER_ADDR";
  point.host = *host;
  point.port = static_cast<int>(environment_number("MASTER_PORT", *port, 1, kMaxPort));
  if (get("TORCHELASTIC_USE_AGENT_STORE") == "True") point.port = point.port == kMaxPort ? 1024 : point.port + 1;
  return point;
}

std::optional<Launch> torchrun(const Environment& get) {
  if (!get("RANK") && !get("WORLD_SIZE") && !get("LOCAL_RANK")) return {};
  const auto number = [&](const char* variable, int64_t low) {
    constexpr const char* kBecause = "RANK, WORLD_SIZE and LOCAL_RANK belong together and another of them is";
    return static_cast<int>(required_number(get, variable, low, kMaxRanks, kBecause));
  };
  Launch launch;
  launch.launcher = "torchrun";
  launch.size = number("WORLD_SIZE", 1);
  launch.rank = number("RANK", 0);
  launch.local_rank = number("LOCAL_RANK", 0);
  check_ranks(launch, "RANK", "WORLD_SIZE", "LOCAL_RANK");
  if (get("LOCAL_WORLD_SIZE")) {
    launch.local_size = number("LOCAL_WORLD_SIZE", 1);
    check_local_size(launch, "LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE");
  }
  // TORCHELASTIC_RESTART_COUNT may differ between the machines of a run, as each counts its own restarts.
  if (const auto run = get("TORCHELASTIC_RUN_ID")) launch.run = "torchrun " + *run;
  return launch;
}

}  // namespace

std::string MeetingPoint::url() const {
  if (is_file()) return "file://" + path;
  const bool brackets = host.find(':') != std::string::npos;
  return fmt::format("tcp://{}{}{}:{}", brackets ? "[" : "", host, brackets ? "]" : "", port);
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return {};
  return value;
}

Launch read_ranks(const Environment& get) {
  auto launch = torchrun(get);
  if (!launch) launch = open_mpi_launch(get);
  if (!launch) launch = slurm_launch(get);
  if (!launch) return {};
  launch->mpi = mpi_knows_ranks(get, *launch);
  return *launch;
}

Launch read_launch(const Environment& get) {
  Launch launch = read_ranks(get);
  const auto url = get("DGC_RENDEZVOUS");
  if (url && launch.launcher == "alone") {
    throw_user_error(
        "DGC_RENDEZVOUS is set, but neither RANK, WORLD_SIZE and LOCAL_RANK nor mpirun nor a SLURM step says which "
        "rank this is");
  }
  if (launch.size == 1) return launch;
  if (const auto file = get("DGC_SECRET_FILE")) launch.secret = read_secret("DGC_SECRET_FILE", *file);
  if (url) {
    launch.meeting = parse_meeting_point(*url);
  } else if (const auto point = master(get)) {
    launch.meeting = *point;
  } else if (launch.launcher == "slurm") {
    launch.meeting = slurm_meeting_point(get);
  } else if (!launch.mpi) {
    throw_user_error("WORLD_SIZE={}, but neither DGC_RENDEZVOUS nor MASTER_ADDR and MASTER_PORT say where rank 0 is",
                     launch.size);
  }
  return launch;
}

std::string without_nccl(const Launch& launch) {
  if (launch.size == 1) return "set exchange.communicator to \"auto\"";
  return launch.mpi ? "set exchange.communicator to \"auto\" or \"mpi\""
                    : "start the ranks with mpirun or srun --mpi=pmix";
}

int choose_gpu(const Launch& launch, int gpus) {
  if (launch.local_rank < gpus) return launch.local_rank;
  if (gpus == 1) return 0;
  if (gpus == 0 && launch.mpi) {
    throw_user_error("there is no GPU here, and NCCL connects GPUs only: {}", without_nccl(launch));
  }
  if (gpus == 0) {
    throw_user_error(
        "there is no GPU here, and NCCL, which connects ranks that {} has started, connects GPUs only: {} to train on "
        "CPUs",
        launch.launcher, without_nccl(launch));
  }
  throw_user_error(
      "this is number {} of its machine's ranks, but only {} GPUs are there: start at most {} ranks per machine, and "
      "set workers_per_rank for more workers",
      launch.local_rank + 1, gpus, gpus);
}

}  // namespace dgc
