// Single steps of a language model: what is carried, clipped and sent.
#include <catch.hpp>
#include <cmath>

#include "run/vocabulary_file.h"
#include "tensor/errors.h"
#include "tests/support/rank_steps.h"
#include "tests/support/tiny_text.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

std::vector<double> losses(const Config& config, int steps) {
  std::vector<double> all;
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    for (int i = 0; i < steps; ++i) all.push_back(step(rank).loss);
  });
  return all;
}

std::vector<float> numbers_of(const std::string& name, const Arena& arena) {
  for (int i = 0; i < arena.layout().size(); ++i) {
    if (arena.layout().spec(i).name == name) return numbers(arena, i);
  }
  throw InternalError("no parameter " + name);
}

void save(Rank& rank, const fs::path& run) {
  CheckpointStore store(run);
  const std::string problem = rank.save(store, 1);
  DGC_CHECK(problem.empty(), problem);
}

}  // namespace

TEST_CASE("language model: a stretch begins where the one before it ended, and an epoch from nothing") {
  const TinyText text;
  const auto with = [&](int bptt) {
    return text.config({fmt::format("data.bptt={}", bptt), "model.dropout=0", "data.train_limit=193", "model.init=0.8",
                        "learning_rate.base=1e-12"});
  };
  // 24 words a stream: the mean loss of an epoch is the same however it is cut, as the weights stand still.
  const auto long_ones = losses(with(12), 4), short_ones = losses(with(6), 8);
  CHECK(long_ones[0] == Approx((short_ones[0] + short_ones[1]) / 2).epsilon(1e-6));
  CHECK(long_ones[1] == Approx((short_ones[2] + short_ones[3]) / 2).epsilon(1e-6));
  for (size_t i = 0; i < 4; ++i) CHECK(short_ones[i] == Approx(short_ones[i + 4]).epsilon(1e-6));
}

TEST_CASE("language model: what a stretch begins with matters") {
  // One stream. The second text begins where the first one's second step does, but from nothing.
  const TinyText text;
  text.write("words.txt", "<eos>\n<unk>\na\nb\nc\n");
  const auto first_losses = [&](const std::string& words, int steps) {
    text.write("train.txt", words);
    return losses(text.config({"data.vocabulary=" + text.path("words.txt").string(), "workers_per_rank=1",
                               "training.batch_per_worker=1", "data.bptt=4", "model.dropout=0", "model.init=0.8",
                               "learning_rate.base=1e-12"}),
                  steps);
  };
  const double carried = first_losses("a b b a c a b c b\n", 2)[1], fresh = first_losses("c a b c b\n", 1)[0];
  CHECK(std::fabs(carried - fresh) > 1e-4);
}

TEST_CASE("language model: a skipped step keeps the state too, and it is each worker's own") {
  const TinyText text;
  const fs::path run = text.path("run");
  fs::create_directories(run);
  on_ranks_of(text.config(), [&](Rank& rank, Communicator&) {
    const auto hashes = [&] {
      save(rank, run);
      std::vector<std::string> all;
      const auto saved = newest_checkpoint(run);
      for (const ManifestFile& file : saved->manifest().files) all.push_back(file.xxh64);
      return all;
    };
    CHECK_FALSE(step(rank).skipped);
    CHECK_FALSE(step(rank).skipped);
    const auto before = hashes();
    const float good = numbers(rank.weights(), 1)[0];  // of the first LSTM layer: the state would be NaN too
    set_number(rank.weights(), 1, 0, std::nanf(""));
    CHECK(step(rank).skipped);
    set_number(rank.weights(), 1, 0, good);
    CHECK(hashes() == before);
    CHECK_FALSE(step(rank).skipped);
  });
  const auto checkpoint = newest_checkpoint(run);
  const auto state = [&](int worker) { return loaded(*checkpoint, worker_file(worker), "state.rnn.c_l1", {2, 6}); };
  CHECK(state(0) != state(1));
  CHECK(state(2) != state(3));
}

TEST_CASE("language model: DGC clips each worker's share to clip / sqrt(N), by the norm over all parameters") {
  // A text that repeats itself: all eight streams read the same words, so all four workers have the same gradient g.
  const TinyText text;
  std::string same;
  for (int i = 0; i < 8 * 4; ++i) same += "a b c d e\n";
  text.write("train.txt", same + "a\n");
  const auto moved = [&](const std::string& optimizer) {
    std::vector<float> difference;
    on_ranks_of(text.config({"optimizer=" + optimizer, "model.dropout=0", "data.bptt=24", "data.train_limit=193",
                             R"(learning_rate={"type": "constant", "base": 1})"}),
                [&](Rank& rank, Communicator&) {
                  difference = numbers(rank.weights());
                  step(rank);
                  const std::vector<float> after = numbers(rank.weights());
                  for (size_t i = 0; i < after.size(); ++i) difference[i] -= after[i];
                });
    return difference;
  };
  const auto norm = [](const std::vector<float>& x) {
    double sum = 0;
    for (const float e : x) sum += static_cast<double>(e) * static_cast<double>(e);
    return std::sqrt(sum);
  };
  constexpr double kClip = 0.01;
  const std::string keep_all = R"("momentum": 0, "sparsity": 0, "factor_masking": false)";
  const auto g = moved(R"({"type": "dgc", )" + keep_all + "}");
  const auto clipped = moved(R"({"type": "dgc", "clip_norm": 0.01, )" + keep_all + "}");
  const auto dense = moved(R"({"type": "sgd", "momentum": 0, "clip_norm": 0.01})");
  REQUIRE(norm(g) > 2 * kClip * 2);
  CHECK(norm(clipped) == Approx(4 * kClip / 2).epsilon(1e-3));  // N shares of clip / sqrt(N) each, all alike
  CHECK(norm(dense) == Approx(kClip).epsilon(1e-3));            // of the mean over all workers
  // One factor for all parameters: a norm of each tensor's own would turn the direction.
  double inner = 0;
  for (size_t i = 0; i < g.size(); ++i) inner += static_cast<double>(g[i]) * static_cast<double>(clipped[i]);
  CHECK(inner == Approx(norm(g) * norm(clipped)).epsilon(1e-4));
}

TEST_CASE("language model: rows of words that never come send nothing and stay as they were") {
  const TinyText text;
  text.write("words.txt",
             run_vocabulary(train(text.config({"training.max_steps=1"}), {.out = text.path("one")})).text() +
                 "ghost\nspectre\n");
  const fs::path run = text.path("run");
  fs::create_directories(run);
  const std::string words = "data.vocabulary=" + text.path("words.txt").string();
  std::vector<float> before, after;
  on_ranks_of(text.config({words, "model.tied=false", "optimizer.clip_norm=null"}), [&](Rank& rank, Communicator&) {
    before = numbers_of("encoder.weight", rank.weights());
    for (int i = 0; i < 15; ++i) step(rank);
    after = numbers_of("encoder.weight", rank.weights());
    save(rank, run);
  });
  REQUIRE(after.size() == 14 * 6);
  const auto row = [](const std::vector<float>& table, int64_t word) {
    return std::vector<float>(table.begin() + word * 6, table.begin() + word * 6 + 6);
  };
  const auto checkpoint = newest_checkpoint(run);
  const auto v = loaded(*checkpoint, worker_file(1), "v.encoder.weight", {14, 6});
  for (const int64_t ghost : {12, 13}) {
    CHECK(row(before, ghost) == row(after, ghost));
    CHECK(row(v, ghost) == std::vector<float>(6));
  }
  CHECK(row(before, 0) != row(after, 0));
}

}  // namespace dgc
