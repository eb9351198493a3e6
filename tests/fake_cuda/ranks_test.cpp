// dgc as processes that meet over TCP, as under torchrun, each with a GPU of its own, and that NCCL connects: which of
// them says what is wrong, and the exit codes.
#include <fmt/core.h>

#include <catch.hpp>
#include <deque>
#include <filesystem>
#include <sstream>

#include "tests/commands/program.h"
#include "tests/dist/meeting/free_port.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

namespace {

// The words behind `env` that start a rank of so many; rank 0 listens at the port.
std::vector<std::string> words_of_rank(int rank, int ranks, int port, int gpus, const std::filesystem::path& run) {
  return {fmt::format("DGC_FAKE_GPUS={}", gpus),
          fmt::format("RANK={}", rank),
          fmt::format("LOCAL_RANK={}", rank),
          fmt::format("WORLD_SIZE={}", ranks),
          fmt::format("LOCAL_WORLD_SIZE={}", ranks),
          "MASTER_ADDR=127.0.0.1",
          fmt::format("MASTER_PORT={}", port),
          DGC_ON_FAKE_CUDA,
          "train",
          "tiny.json",
          "--out",
          run.string(),
          "--set",
          "device=auto",
          "--set",
          "exchange.failure_timeout_s=5"};
}

// A rank that is not as the others: how many GPUs it sees, and its further words.
struct OddRank {
  int rank = 2;
  std::vector<std::string> words = {};
  int gpus = 3;
};

// What each of three ranks has said and its exit code.
std::vector<Result> three_ranks(const OddRank& odd) {
  const int port = free_port();
  const Program shared;
  std::deque<Program> folders;
  std::deque<Child> children;
  for (int rank = 0; rank < 3; ++rank) {
    const int gpus = rank == odd.rank ? odd.gpus : 3;
    std::vector<std::string> words = words_of_rank(rank, 3, port, gpus, shared.folder() / "run");
    if (rank == odd.rank) words.insert(words.end(), odd.words.begin(), odd.words.end());
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
  const auto [odd, why] = GENERATE(table<OddRank, std::string>({
      {{.words = {"--set", "seed=-1"}}, "seed"},
      {{.gpus = 0}, "there is no GPU here"},
      {{.rank = 0, .words = {"--set", "exchange.interface=no0"}}, "exchange.interface"},
  }));
  CAPTURE(odd.rank, why);
  const std::vector<Result> ranks = three_ranks(odd);
  const std::string said = all_errors(ranks);
  CHECK(is_one_line(said));
  CHECK_THAT(said, Catch::StartsWith(fmt::format("error: rank {}: ", odd.rank)) && Contains(why));
  for (int rank = 0; rank < 3; ++rank) CHECK(ranks[static_cast<size_t>(rank)].code == (rank == odd.rank ? 2 : 1));
}

TEST_CASE("ranks that met over TCP name the key in which their configs differ", "[ranks]") {
  const auto [set, words] = GENERATE(table<std::string, std::string>(
      {{"seed=9", "seed = 9, and rank 0 with 1"},
       {"exchange.failure_timeout_s=50", "exchange.failure_timeout_s = 50, and rank 0 with 5"}}));
  const std::vector<Result> ranks = three_ranks({.words = {"--set", set}});
  CHECK(all_errors(ranks) ==
        fmt::format("error: rank 0: rank 2 was started with {}; give all ranks the same config and "
                    "--set\n",
                    words));
  CHECK(ranks[0].code == 2);
  for (const size_t told : {1, 2}) CHECK((ranks[told].code == 1 || ranks[told].code == 2));
}

TEST_CASE("a rank that dies while NCCL connects is named, and is no error of the user's", "[ranks]") {
  const int port = free_port();
  const Program shared;
  std::deque<Program> folders;
  std::deque<Child> children;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::string> words = words_of_rank(rank, 2, port, 2, shared.folder() / "run");
    words.insert(words.begin(), "DGC_FAKE_DEATH=1");
    words.insert(words.end(), {"--set", "exchange.failure_timeout_s=50"});
    children.emplace_back(folders.emplace_back().folder(), words, "env");
  }
  CHECK(children[1].wait() == 128 + SIGKILL);
  const int code = children[0].wait();
  INFO(children[0].err());
  CHECK(code == 1);
  CHECK_THAT(children[0].err(),
             Contains("error: rank 1 (") && Contains("has died") && !Contains("NCCL cannot connect the ranks"));
}

TEST_CASE("a rank that waits for the others says so, and a signal ends it", "[ranks]") {
  const Program dgc;
  Child rank(dgc.folder(), words_of_rank(0, 2, free_port(), 2, dgc.folder() / "run"), "env");
  REQUIRE(wait_until([&] { return rank.err().find("rank 0 waits") != std::string::npos; }));
  rank.send(SIGTERM);
  const int code = rank.wait();
  INFO(rank.err());
  CHECK(code == 130);
  CHECK_THAT(rank.err(), Contains("stopped by a signal before the ranks had met"));
}
