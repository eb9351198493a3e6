#include "dist/launch/launch_mpi.h"

#include "dist/launch/launch_variables.h"

namespace dgc {
namespace {

constexpr const char* kRank = "OMPI_COMM_WORLD_RANK";
constexpr const char* kSize = "OMPI_COMM_WORLD_SIZE";
constexpr const char* kLocalRank = "OMPI_COMM_WORLD_LOCAL_RANK";
constexpr const char* kLocalSize = "OMPI_COMM_WORLD_LOCAL_SIZE";

int mpi_number(const Environment& get, const char* variable, int64_t low) {
  return static_cast<int>(required_number(get, variable, low, kMaxRanks, "others of mpirun's variables are"));
}

}  // namespace

std::optional<Launch> open_mpi_launch(const Environment& get) {
  if (!get(kRank) && !get(kSize)) return {};
  Launch launch;
  launch.launcher = "mpirun";
  launch.rank = mpi_number(get, kRank, 0);
  launch.size = mpi_number(get, kSize, 1);
  launch.local_rank = mpi_number(get, kLocalRank, 0);
  launch.local_size = mpi_number(get, kLocalSize, 1);
  check_ranks(launch, kRank, kSize, kLocalRank);
  check_local_size(launch, kLocalRank, kLocalSize, kSize);
  if (const auto job = get("PMIX_NAMESPACE")) launch.run = "mpirun " + *job;
  return launch;
}

bool mpi_knows_ranks(const Environment& get, const Launch& launch) {
  if (get(kRank)) return get(kRank) == std::to_string(launch.rank) && get(kSize) == std::to_string(launch.size);
  return launch.launcher == "slurm" && get("PMIX_RANK") == std::to_string(launch.rank);
}

}  // namespace dgc
