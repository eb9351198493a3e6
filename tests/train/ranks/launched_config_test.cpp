#include "train/ranks/launched_config.h"

#include <catch.hpp>
#include <map>
#include <optional>
#include <string>

#include "config/config.h"
#include "dist/communicator.h"
#include "tensor/errors.h"
#include "tests/support/tiny.h"

namespace dgc {

namespace {

using Catch::Contains;

Launch launched(const std::string& launcher, bool mpi) {
  Launch launch;
  launch.launcher = launcher;
  launch.rank = 1;
  launch.size = 4;
  launch.mpi = mpi;
  if (launcher == "torchrun") launch.meeting = {.host = "node1", .port = 29500, .path = {}};
  return launch;
}

}  // namespace

TEST_CASE("a launcher's processes are the ranks") {
  const Launch launch = launched("torchrun", false);
  const Config config = with_launch(test::tiny_config(), launch);
  CHECK(config.ranks == 4);
  CHECK(config.exchange.communicator == CommunicatorType::nccl);
  CHECK(with_launch(test::tiny_config(), {}) == test::tiny_config());
  CHECK(with_launch(test::tiny_config({"ranks=4"}), launch).ranks == 4);
  CHECK_THROWS_WITH(with_launch(test::tiny_config({"ranks=2"}), launch), Contains("ranks: 2 does not fit the 4"));
  CHECK_THROWS_WITH(with_launch(test::tiny_config({"ranks=1025"}), {}), Contains("more than the 1024 threads"));
  CHECK_THROWS_WITH(with_launch(test::tiny_config({"exchange.communicator=\"threads\""}), launch),
                    Contains("exchange.communicator: \"threads\" is for one process, but torchrun has started 4"));
}

TEST_CASE("one process is not taken for the ranks that NCCL would connect") {
  const std::string nccl = "exchange.communicator=\"nccl\"";
  CHECK_THROWS_WITH(with_launch(test::tiny_config({nccl, "ranks=4"}), {}),
                    Contains("\"nccl\" has one process here, but ranks is 4; start mpirun -n 4 or another launcher"));
  CHECK(with_launch(test::tiny_config({nccl}), {}).ranks == 1);
  CHECK(with_launch(test::tiny_config({nccl, "ranks=4"}), launched("torchrun", false)).ranks == 4);
}

TEST_CASE("what a run of 4,096 processes has written can be read again") {
  Launch launch = launched("torchrun", false);
  launch.size = 4096;
  const Config config = with_launch(test::tiny_config(), launch);
  CHECK(parse_config(resolved_json(config), "config.json") == config);
}

TEST_CASE("groups are whole, and neither they nor ranks cut the other in two") {
  const auto of = [](int ranks, int workers_per_rank, int workers_per_group) {
    return test::tiny_config({fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", workers_per_rank),
                              fmt::format("exchange.workers_per_group={}", workers_per_group)});
  };
  for (const auto& good : {of(1, 4, 4), of(4, 1, 2), of(2, 6, 3), of(6, 2, 6), of(3, 1, 1)}) {
    CHECK_NOTHROW(with_launch(good, {}));
  }
  CHECK_THROWS_WITH(with_launch(of(1, 4, 3), {}), Contains("exchange.workers_per_group: 4 workers cannot be divided"));
  CHECK_THROWS_WITH(with_launch(of(2, 3, 2), {}), Contains("groups of 2 and ranks of 3 workers overlap"));
  CHECK_THROWS_WITH(with_launch(of(1, 1, 3), launched("torchrun", false)), Contains("4 workers cannot be divided"));
}

TEST_CASE("where MPI connects the ranks, nobody asks where they would meet") {
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const std::map<std::string, std::string> variables = {
        {"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "2"},       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"DGC_RENDEZVOUS", "of other runs"}, {"MASTER_ADDR", "node1"}};
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  if (mpi_description().empty()) {
    CHECK_THROWS_WITH(this_launch(environment), Contains("DGC_RENDEZVOUS=of other runs"));
    return;
  }
  const Launch launch = this_launch(environment);
  CHECK((launch.rank == 1 && launch.size == 2 && launch.mpi && !launch.meeting.is_set()));
}

TEST_CASE("MPI carries what mpirun has started, and nothing else") {
  const std::string mpi = "exchange.communicator=\"mpi\"";
  CHECK_THROWS_WITH(with_launch(test::tiny_config({mpi}), launched("torchrun", false)),
                    Contains("\"mpi\" needs mpirun, or srun --mpi=pmix, but torchrun has started 4 processes without"));
  CHECK_THROWS_WITH(with_launch(test::tiny_config({mpi, "ranks=4"}), {}), Contains("start mpirun -n 4"));
  CHECK(with_launch(test::tiny_config({mpi}), {}).ranks == 1);
  const Launch launch = launched("mpirun", true);
  if (mpi_description().empty()) {
    for (const auto& config : {test::tiny_config(), test::tiny_config({mpi})}) {
      CHECK_THROWS_WITH(with_launch(config, launch), Contains("mpirun has started 4 processes") &&
                                                         Contains("MPI is not in this build: install libopenmpi-dev"));
    }
    return;
  }
  // "auto" is decided together, once all know of all GPUs.
  CHECK(with_launch(test::tiny_config(), launch).exchange.communicator == CommunicatorType::automatic);
  CHECK(with_launch(test::tiny_config({mpi}), launch).exchange.communicator == CommunicatorType::mpi);
  CHECK(with_launch(test::tiny_config({mpi}), launch).ranks == 4);
}

}  // namespace dgc
