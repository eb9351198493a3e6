#include <catch.hpp>

#include "tests/support/run_files.h"
#include "tests/support/tiny.h"

// Whole runs with exchange.overlap, against the same runs without.
namespace dgc {
namespace {

using namespace test;

std::vector<std::string> with(std::vector<std::string> overrides, const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

const std::vector<std::string> kEachTensor = {"exchange.overlap=on", "exchange.bucket_mb=0.0001"};

// The final row, and what the last checkpoint holds, weights and every worker's u and v included.
struct Ended {
  Row final;
  std::vector<std::string> state;
};

Ended ended(const std::vector<std::string>& overrides) {
  const TempRun run;
  train(tiny_config(overrides), {.out = run.path() / "run"});
  Ended ended{metrics_of(run.path() / "run").back(), {}};
  const auto checkpoint = newest_checkpoint(run.path() / "run");
  for (const ManifestFile& file : checkpoint.value().manifest().files) {
    ended.state.push_back(file.name + " " + file.xxh64);
  }
  return ended;
}

}  // namespace

TEST_CASE("a run that overlaps ends in the same weights, u and v, wherever its workers are") {
  const auto variant =
      GENERATE(std::vector<std::string>{}, std::vector<std::string>{"exchange.transport=sparse"},
               std::vector<std::string>{"exchange.transport=sparse", "exchange.small_tensors=sparse",
                                        "exchange.wire={\"values\": \"int8\", \"indices\": \"rice\"}"});
  CAPTURE(variant);
  const Ended truth = ended(with(variant, {"exchange.overlap=off"}));
  CHECK(truth.state.size() == 2 + 4);
  CHECK(truth.final.find("hidden_share") == nullptr);
  for (const auto& [ranks, workers] : {std::pair{1, 4}, {4, 1}, {2, 2}}) {
    CAPTURE(ranks);
    const auto spread =
        with(kEachTensor, {fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", workers)});
    const Ended found = ended(with(variant, spread));
    CHECK(found.state == truth.state);
    CHECK(found.final.text("weights_xxh64") == truth.final.text("weights_xxh64"));
    CHECK(found.final.number("exchange_ms").value() > 0);
    CHECK(found.final.number("hidden_share").value() >= 0);
    CHECK(found.final.number("hidden_share").value() <= 1);
  }
}

TEST_CASE("a run may be resumed with overlap, or without") {
  const TempRun run;
  const auto go_on = [&](const std::string& overlap, int steps) {
    train(tiny_config({"exchange.overlap=" + overlap, "exchange.bucket_mb=0.0001", "ranks=2", "workers_per_rank=2",
                       "exchange.transport=sparse", fmt::format("training.max_steps={}", steps)}),
          {.out = run.path() / "run", .resume = true});
  };
  go_on("off", 5);
  go_on("on", 10);  // 5 steps: what u and v became lies where it did not at the start
  go_on("off", 14);
  go_on("on", 18);
  CHECK(metrics_of(run.path() / "run").back().text("weights_xxh64") == ended({}).final.text("weights_xxh64"));
}

TEST_CASE("auto does not overlap in one process") {
  CHECK(ended({"exchange.bucket_mb=0.0001", "ranks=2", "workers_per_rank=2"}).final.find("exchange_ms") == nullptr);
}

}  // namespace dgc
