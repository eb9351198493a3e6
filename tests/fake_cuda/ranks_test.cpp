// dgc as processes that meet over TCP, as under torchrun, each with a GPU of its own, and that NCCL connects: which of
// them says what is wrong, and the exit codes.
#include <fmt/core.h>

#include <catch.hpp>
#include <deque>
#include <sstream>

#include "tests/commands/program.h"
#include "tests/dist/meeting/free_port.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

namespace {

// Three ranks, of which rank 2 is started with more words. What each has said and its exit code.
std::vector<Result> three_ranks(const std::vector<std::string>& words_of_rank2) {
  const int port = free_port();
  const Program shared;
  std::deque<Program> folders;
  std::deque<Child> children;
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<std::string> words = {"DGC_FAKE_GPUS=3",
                                      fmt::format("RANK={}", rank),
                                      fmt::format("LOCAL_RANK={}", rank),
                                      "WORLD_SIZE=3",
                                      "LOCAL_WORLD_SIZE=3",
                                      "MASTER_ADDR=127.0.0.1",
                                      fmt::format("MASTER_PORT={}", port),
                                      DGC_ON_FAKE_CUDA,
                                      "train",
                                      "tiny.json",
                                      "--out",
                                      (shared.folder() / "run").string(),
                                      "--set",
                                      "device=auto",
                                      "--set",
                                      "exchange.failure_timeout_s=5"};
    if (rank == 2) words.insert(words.end(), words_of_rank2.begin(), words_of_rank2.end());
    children.emplace_back(folders.emplace_back().folder(), words, "env");
  }
  std::vector<Result> results;
  for (Child& child : children) {
    const int code = child.wait();
    results.push_back({code, child.out(), child.err()});
  }
  return results;
}

std::string all_errors(const std::vector<Result>& ranks) {
  std::string all;
  for (const Result& rank : ranks) {
    std::istringstream lines(rank.err);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("error: ")) all += line + "\n";
    }
  }
  return all;
}

}  // namespace

TEST_CASE("what keeps one rank from meeting the others is said once, by that rank", "[ranks]") {
  const std::vector<Result> ranks = three_ranks({"--set", "seed=-1"});
  const std::string said = all_errors(ranks);
  CHECK(is_one_line(said));
  CHECK_THAT(said, Catch::StartsWith("error: rank 2: ") && Contains("seed"));
  CHECK(ranks[2].code == 2);
  for (const size_t other : {0, 1}) CHECK(ranks[other].code == 1);
}

TEST_CASE("ranks that met over TCP name the key in which their configs differ", "[ranks]") {
  const auto [set, words] = GENERATE(table<std::string, std::string>(
      {{"seed=9", "seed = 9, and rank 0 with 1"},
       {"exchange.failure_timeout_s=50", "exchange.failure_timeout_s = 50, and rank 0 with 5"}}));
  const std::vector<Result> ranks = three_ranks({"--set", set});
  CHECK(all_errors(ranks) ==
        fmt::format("error: rank 0: rank 2 was started with {}; give all ranks the same config and "
                    "--set\n",
                    words));
  CHECK(ranks[0].code == 2);
  for (const size_t told : {1, 2}) CHECK((ranks[told].code == 1 || ranks[told].code == 2));
}
