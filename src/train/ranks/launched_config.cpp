#include "train/ranks/launched_config.h"

#include <utility>

#include "config/enum_names.h"
#include "dist/communicator.h"
#include "tasks/make.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

Config connected(Config config, const Launch& launch) {
  constexpr int64_t kMostThreads = 1024;
  CommunicatorType& communicator = config.exchange.communicator;
  if (launch.size == 1) {
    const bool between_processes = communicator == CommunicatorType::mpi || communicator == CommunicatorType::nccl;
    if (between_processes && config.ranks > 1) {
      throw_user_error(
          "exchange.communicator: \"{}\" has one process here, but ranks is {}; start mpirun -n {} or another launcher",
          enum_name(communicator), config.ranks, config.ranks);
    }
    if (config.ranks > kMostThreads) {
      throw_user_error(
          "ranks: {} are more than the {} threads that one process may have; start processes, or set "
          "workers_per_rank",
          config.ranks, kMostThreads);
    }
    return config;
  }
  const auto started = fmt::format("{} has started {} processes", launch.launcher, launch.size);
  if (communicator == CommunicatorType::single || communicator == CommunicatorType::threads) {
    throw_user_error("exchange.communicator: \"{}\" is for one process, but {}; use \"auto\"", enum_name(communicator),
                     started);
  }
  if (config.ranks != 1 && config.ranks != launch.size) {
    throw_user_error("ranks: {} does not fit the {} processes that {} has started; leave it out", config.ranks,
                     launch.size, launch.launcher);
  }
  config.ranks = launch.size;
  if (has_mpi(launch)) return config;

  if (communicator == CommunicatorType::mpi && !launch.mpi) {
    throw_user_error("exchange.communicator: \"mpi\" needs mpirun, or srun --mpi=pmix, but {} without", started);
  }
  if (communicator == CommunicatorType::mpi || (launch.mpi && nccl_description().empty())) {
    throw_user_error("{}, but MPI is not in this build: install libopenmpi-dev (scripts/setup does) and build again",
                     started);
  }
  if (!launch.meeting.is_set()) {
    throw_user_error(
        "{}, and as MPI is not in this build NCCL cannot connect them: set DGC_RENDEZVOUS=tcp://host:port to a free "
        "port of rank 0's machine, or install libopenmpi-dev and build again",
        started);
  }
  communicator = CommunicatorType::nccl;
  if (config.exchange.wait) {
    throw_user_error(
        "exchange.wait: {} and without MPI only NCCL can connect them, which has all ranks in every exchange; leave it "
        "out, or start them with mpirun",
        started);
  }
  return config;
}

}  // namespace

bool has_mpi(const Launch& launch) { return launch.mpi && !mpi_description().empty(); }

Launch this_launch(const Environment& get) {
  const Launch ranks = read_ranks(get);
  return has_mpi(ranks) ? ranks : read_launch(get);
}

Config with_launch(Config config, const Launch& launch) {
  config = connected(std::move(config), launch);
  check_groups(config, config.workers());
  return config;
}

}  // namespace dgc
