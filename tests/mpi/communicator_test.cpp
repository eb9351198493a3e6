#include <fmt/core.h>

#include "paths.h"
#include "tests/mpi/mpirun.h"

// The communicator of MPI, in as many processes as it has ranks (rank/main.cpp).
namespace dgc {
namespace {

using namespace test;
using Catch::Contains;
using Strings = std::vector<std::string>;

Result scene(int ranks, const std::string& what, int argument = 0) {
  const TempRun folder;
  return Mpirun(folder.path(), {"-n", std::to_string(ranks), DGC_MPI_RANK, what, std::to_string(argument)}).wait();
}

}  // namespace

TEST_CASE("MPI carries parts and shards to where they belong") {
  if (!have_mpirun()) return;
  const int ranks = GENERATE(1, 2, 3, 4);
  const Result result = scene(ranks, "collectives");
  INFO(result.err);
  CHECK(result.code == 0);
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK_THAT(result.out, Contains(fmt::format("rank {} of {}: 0 wrong\n", rank, ranks)));
  }
}

TEST_CASE("a rank that fails ends the others, and is the only one to say why") {
  if (!have_mpirun()) return;
  const int rank = GENERATE(0, 2);
  const Result result = scene(3, "fails", rank);
  INFO(result.err);
  check_code(result, 2);
  CHECK(errors_in(result.err) == Strings{fmt::format("error: rank {}: the disk is full", rank)});
}

TEST_CASE("a letter whose size is damaged ends the run, and nobody waits for the rest of it") {
  if (!have_mpirun()) return;
  const Result result = scene(2, "damaged_letter", 1);
  INFO(result.err);
  check_code(result, 1);
  CHECK_THAT(result.err, Contains("the size of a letter of rank 1 is damaged"));
}

TEST_CASE("what all ranks find wrong at once is said") {
  if (!have_mpirun()) return;
  const Result result = scene(4, "all_fail");
  INFO(result.err);
  check_code(result, 1);
  REQUIRE(!errors_in(result.err).empty());
  for (const std::string& error : errors_in(result.err)) CHECK_THAT(error, Contains("all have found the same"));
}

TEST_CASE("ranks of MPI that make different calls find out") {
  if (!have_mpirun()) return;
  const auto [what, calls] = GENERATE(table<int, std::string>({
      {0, "all_gather of 4 bytes"},
      {1, "gather_shards of 7 elements"},
      {2, "gather_shards of 8 elements and 1 workers"},
  }));
  const Result result = scene(2, "disagrees", what);
  INFO(result.err);
  check_code(result, 1);
  CHECK_THAT(result.err, Contains("error: rank ") && Contains(calls));
}

TEST_CASE("a wait for a rank that does not come can be ended") {
  if (!have_mpirun()) return;
  const Result result = scene(3, "waits", 1);
  INFO(result.err);
  check_code(result, 1);
  REQUIRE(!errors_in(result.err).empty());
  CHECK_THAT(errors_in(result.err)[0], Contains("rank 1 has not been heard of"));
}

TEST_CASE("a replica in another process that differs is found, with its rank and tensor") {
  if (!have_mpirun()) return;
  const Result result = scene(3, "replicas", 2);
  INFO(result.err);
  check_code(result, 1);
  const Strings errors = errors_in(result.err);
  REQUIRE(errors.size() == 1);
  CHECK_THAT(errors[0], Contains("step 1: the weights of rank 2 differ from rank 0's in 5.weight"));
}

TEST_CASE("processes skip a step together where the gradient of one is not finite") {
  if (!have_mpirun()) return;
  const Result result = scene(3, "skips", 2);
  INFO(result.err);
  check_code(result, 0);
  for (int rank = 0; rank < 3; ++rank) CHECK_THAT(result.out, Contains(fmt::format("rank {}: ..s.\n", rank)));
}

}  // namespace dgc
