#include "tasks/overlap.h"

#include <catch.hpp>
#include <cstring>

#include "config/model_types.h"
#include "kernels/cpu/cpu_backend.h"
#include "tasks/make.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tests/support/wrapped_device.h"

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

struct Somewhere : WrappedDevice {
  explicit Somewhere(bool host) : is_host(host) {}
  bool on_host() const override { return is_host; }
  bool is_host;
};

// Two processes on machines of one kind.
struct Peers : Communicator {
  std::string name() const override { return "peers"; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  bool recordable() const override { return false; }
  void all_gather(Device&, const void* mine, void* all, size_t bytes) override {
    for (size_t rank = 0; rank < 2; ++rank) std::memcpy(static_cast<std::byte*>(all) + rank * bytes, mine, bytes);
  }
  void gather_shards(Device&, std::span<const float* const>, float*, size_t) override {}
  void barrier(Device&) override {}
  std::unique_ptr<Communicator> split(const Ranks&) override { return nullptr; }
  void abort(const std::string&) noexcept override {}
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

TEST_CASE("on is on everywhere, and auto is off on a GPU") {
  const ParamLayout params(make_network(tiny_config().model, {8, 8, 1}).params());
  const bool on_host = GENERATE(true, false);
  CpuBackend backend(1, std::make_shared<Somewhere>(on_host));
  Peers peers;
  const auto choose = [&](const std::string& overlap) {
    const Config config = tiny_config({"exchange.overlap=" + overlap, "exchange.bucket_mb=0.0001"});
    return choose_bucket_bytes(config, {backend, peers, params, 4});
  };
  CHECK(choose("on") == 105);
  CHECK(choose("auto") == (on_host ? std::optional<int64_t>(105) : std::nullopt));
  CHECK_FALSE(choose("off"));
}

TEST_CASE("auto does not overlap in one process") {
  CHECK(ended({"exchange.bucket_mb=0.0001", "ranks=2", "workers_per_rank=2"}).final.find("exchange_ms") == nullptr);
}

}  // namespace dgc
