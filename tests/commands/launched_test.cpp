#include <fmt/core.h>

#include <catch.hpp>

#include "tests/commands/program.h"
#include "tests/dist/meeting/free_port.h"

// dgc as one of several processes that no MPI connects, as under torchrun.
namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

// `dgc train` as one of two ranks, in a folder of its own.
class RankProcess {
 public:
  RankProcess(int rank, int port, const std::vector<std::string>& more = {})
      : child_(program_.folder(), words(rank, port, more), "env") {}
  Result wait() {
    const int code = child_.wait();
    return {code, child_.out(), child_.err()};
  }

 private:
  static std::vector<std::string> words(int rank, int port, const std::vector<std::string>& more) {
    std::vector<std::string> all = {fmt::format("RANK={}", rank),
                                    fmt::format("LOCAL_RANK={}", rank),
                                    "WORLD_SIZE=2",
                                    "MASTER_ADDR=127.0.0.1",
                                    fmt::format("MASTER_PORT={}", port),
                                    DGC_BINARY,
                                    "train",
                                    "tiny.json",
                                    "--out",
                                    "run"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Program program_;
  Child child_;
};

}  // namespace

TEST_CASE("ranks that NCCL cannot connect are refused before they wait for each other") {
  const int port = free_port();
  RankProcess rank0(0, port), rank1(1, port);
  for (RankProcess* rank : {&rank0, &rank1}) {
    const Result result = rank->wait();
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains("computes on cpu, but NCCL connects GPUs only") ||
                               Contains("NCCL, which would connect the ranks, is not in this build"));
    CHECK_THAT(result.err, !Contains("waits"));
  }
}

TEST_CASE("a rank that is alone with its error does not wait for the others") {
  RankProcess rank0(0, free_port(), {"--set", "exchange.failure_timeout_s=1"});
  const Result result = rank0.wait();
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("error: rank 0: ") && Contains("NCCL"));
}

TEST_CASE("a rank that alone was given a wrong option tells its error, though another one tells those of all") {
  RankProcess rank1(1, free_port(), {"--nonsense"});
  const Result result = rank1.wait();
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("error: rank 1: ") && Contains("--nonsense"));
}

}  // namespace dgc
