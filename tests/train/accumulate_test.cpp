// training.accumulate: a worker's batch in micro-batches.
#include <catch.hpp>
#include <filesystem>
#include <functional>

#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

// A batch norm would see another batch, so there is none.
const std::string kNoNorm =
    R"(model.layers=[{"type": "conv2d", "out": 4, "kernel": 3, "pad": 1}, {"type": "relu"}, {"type": "flatten"},
                     {"type": "dropout", "p": 0.2}, {"type": "linear", "out": 4}])";

struct Accumulated {
  std::vector<float> weights;
  std::vector<StepMetrics> rows;
};

Accumulated after_steps(const Config& config, int steps) {
  Accumulated outcome;
  on_ranks_of(config, [&](Rank& rank, Communicator& communicator) {
    const std::vector<StepMetrics> rows = make_steps(rank, steps);
    rank.check_replicas();
    if (communicator.rank() != 0) return;
    outcome.weights = numbers(rank.weights());
    outcome.rows = rows;
  });
  return outcome;
}

void check_near(const Accumulated& a, const Accumulated& b) {
  REQUIRE(a.weights.size() == b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) REQUIRE(a.weights[i] == Approx(b.weights[i]).margin(1e-5));
  for (size_t i = 0; i < a.rows.size(); ++i) {
    CHECK(a.rows[i].loss == Approx(b.rows[i].loss).epsilon(1e-5));
    CHECK(a.rows[i].grad_norm == Approx(b.rows[i].grad_norm).epsilon(1e-4));
    CHECK(a.rows[i].epoch == b.rows[i].epoch);
    CHECK(a.rows[i].dense_bytes == b.rows[i].dense_bytes);
  }
}

std::string parts(int64_t count) { return fmt::format("training.accumulate={}", count); }

}  // namespace

TEST_CASE("images in micro-batches make the steps of the whole batch, but for rounding") {
  const std::string optimizer = GENERATE(kSgd, kDgc);
  const int64_t count = GENERATE(2, 4);
  const auto of = [&](int64_t n) { return after_steps(tiny_config({kNoNorm, optimizer, parts(n)}), 14); };
  check_near(of(count), of(1));
}

TEST_CASE("streams of text in micro-batches make the steps of the whole batch, but for rounding") {
  const TinyText text;
  const std::string optimizer = GENERATE(kSgd, kDgc);
  // Dropout is drawn for the place that a stream has in its batch.
  const auto of = [&](int64_t n) {
    return after_steps(text.config({optimizer, "training.batch_per_worker=4", "workers_per_rank=2", "model.dropout=0",
                                    "learning_rate.base=0.5", parts(n)}),
                       14);
  };
  const int64_t count = GENERATE(2, 4);
  check_near(of(count), of(1));
}

TEST_CASE("micro-batches have the same bits on every layout of ranks, and with overlap") {
  const TinyText text;
  const TinySpeech speech;
  const auto make =
      GENERATE_REF(std::function([](const std::vector<std::string>& more) { return tiny_config(more); }),
                   std::function([&](const std::vector<std::string>& more) { return text.config(more); }),
                   std::function([&](const std::vector<std::string>& more) { return speech.config(more); }));
  const std::string also = GENERATE("exchange.overlap=off", "exchange.every_steps=2");
  const auto of = [&](const std::vector<std::string>& layout) {
    std::vector<std::string> all = {kDgc, parts(2), also};
    all.insert(all.end(), layout.begin(), layout.end());
    return after_steps(make(all), 5).weights;
  };
  const std::vector<float> truth = of({});
  CHECK(of({"ranks=4", "workers_per_rank=1"}) == truth);
  CHECK(of({"ranks=2", "workers_per_rank=2"}) == truth);
  if (also != "exchange.overlap=off") return;
  CHECK(of({"ranks=2", "workers_per_rank=2", "exchange.overlap=on", "exchange.bucket_mb=0.0001"}) == truth);
}

TEST_CASE("a text in micro-batches that is killed and resumed ends as one that was not") {
  const TinyText text;
  const std::string also = GENERATE("exchange.every_steps=1", "exchange.every_steps=4");
  const TempRun folder;
  const std::vector<std::string> variant = {kDgc, parts(2), also, "checkpoint.every_steps=1", "checkpoint.keep=100"};
  const auto whole = train(text.config(variant), {.out = folder.path() / "whole"});
  fs::copy(whole, folder.path() / "killed", fs::copy_options::recursive);
  kill_after(folder.path() / "killed", 6);  // inside an epoch, and inside a round
  train(text.config(variant), {.out = folder.path() / "killed", .resume = true});
  CHECK(timeless_rows(folder.path() / "killed") == timeless_rows(whole));
}

TEST_CASE("a batch that does not fall into so many micro-batches is refused") {
  CHECK_THROWS_WITH(
      tiny_config({parts(3)}),
      Catch::Contains("training.accumulate") &&
          Catch::Contains("3 does not divide training.batch_per_worker, which is 4; set it to a divisor"));
}

}  // namespace dgc
