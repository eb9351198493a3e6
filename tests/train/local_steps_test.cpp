#include "train/steps/local_steps.h"

#include <catch.hpp>
#include <cmath>
#include <csignal>

#include "data/sampling.h"
#include "tasks/make.h"
#include "tensor/errors.h"
#include "tests/support/altered_images.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/signal_this_process.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_text.h"
#include "train/ranks/interrupt.h"

// Rounds of exchange.every_steps. An epoch of the tiny config has 6 steps: rounds of 4 and of 2.
namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

const std::string kFour = "exchange.every_steps=4";
const std::string kOuter = R"(exchange.outer={"learning_rate": 0.75, "momentum": 0.5, "nesterov": true})";

std::vector<std::string> on_ranks_as(int ranks, int workers_per_rank) {
  return {fmt::format("ranks={}", ranks), fmt::format("workers_per_rank={}", workers_per_rank)};
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Counts the collectives of a rank on its own.
class CountingCommunicator final : public Communicator {
 public:
  int collectives = 0;

  std::string name() const override { return alone_->name(); }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  bool between_processes() const override { return false; }
  bool recordable() const override { return alone_->recordable(); }
  void all_gather(Device& device, const void* mine, void* all, size_t bytes) override {
    ++collectives;
    alone_->all_gather(device, mine, all, bytes);
  }
  void gather_shards(Device& device, std::span<const float* const> local, float* mine, size_t n) override {
    ++collectives;
    alone_->gather_shards(device, local, mine, n);
  }
  void barrier(Device& device) override {
    ++collectives;
    alone_->barrier(device);
  }
  std::unique_ptr<Communicator> split(const Ranks& ranks) override { return alone_->split(ranks); }
  void abort(const std::string& reason) noexcept override { alone_->abort(reason); }

 private:
  std::unique_ptr<Communicator> alone_ = make_single_communicator();
};

}  // namespace

TEST_CASE("workers that take steps of their own have the same bits as threads and one after another") {
  const auto variant =
      GENERATE(std::vector<std::string>{kSgd, "optimizer.clip_norm=0.5"}, std::vector<std::string>{kDgc, kOuter},
               std::vector<std::string>{kDgc, "exchange.wire.values=\"fp16\"", "exchange.small_tensors=\"dense_fp16\""},
               std::vector<std::string>{kDgc, "exchange.algorithm=split_reduce", "exchange.transport=sparse"},
               std::vector<std::string>{kSgd, kOuter, "exchange.dense_values=fp16"});
  CAPTURE(variant);
  constexpr int kSteps = 9;  // the last three of them without an exchange
  const auto on = [&](int ranks, int workers) {
    return outcome_after(tiny_config(variant + on_ranks_as(ranks, workers) + std::vector{kFour}), kSteps);
  };
  const RankOutcome one = on(1, 4);
  CHECK(one.losses.size() == 2);
  CHECK(one == on(4, 1));
  CHECK(one == on(2, 2));
}

TEST_CASE("nothing travels within a round") {
  const Config config = tiny_config({kFour, "exchange.transport=sparse"});
  const Datasets sets = open_sets(config);
  const auto backend = make_cpu_backend(1);
  CountingCommunicator communicator;
  Rank rank(config, sets.view(), *backend, communicator);
  std::vector<bool> exchanged, talked;
  for (int i = 0; i < 12; ++i) {
    const int before = communicator.collectives;
    rank.train_step();
    rank.next_metrics();
    exchanged.push_back(rank.met() > 0);
    talked.push_back(communicator.collectives > before);
  }
  CHECK(exchanged == std::vector<bool>{false, false, false, true, false, true, false, false, false, true, false, true});
  CHECK(talked == exchanged);
}

TEST_CASE("one worker's dense rounds are its own momentum SGD, but for the rounding of differences") {
  const auto weights = [](const std::vector<std::string>& more) {
    std::vector<float> all;
    on_ranks_of(tiny_config(std::vector<std::string>{kSgd, "workers_per_rank=1", "optimizer.clip_norm=0.5"} + more),
                [&](Rank& rank, Communicator&) {
                  make_steps(rank, 12);
                  all = numbers(rank.weights());
                });
    return all;
  };
  const std::vector<float> truth = weights({}), rounds = weights({kFour});
  double apart = 0;
  for (size_t i = 0; i < truth.size(); ++i) apart = std::max(apart, std::abs(double{truth[i]} - double{rounds[i]}));
  CHECK(apart < 1e-5);
  CHECK(apart > 0);  // a difference of weights is rounded where they are far apart
}

TEST_CASE("each row is of an exchange and tells the steps, the bytes and the loss of its round") {
  const TempRun run;
  const auto out = run.path() / "run";
  train(tiny_config({kDgc, kFour, "optimizer.warmup.epochs=0", "training.max_steps=15"}), {.out = out});
  std::vector<int64_t> steps, lengths, dense, sent;
  for (const Row& row : rows_of_kind(out, "step")) {
    steps.push_back(*row.integer("step"));
    lengths.push_back(row.integer("local_steps").value_or(1));
    dense.push_back(*row.integer("dense_bytes"));
    sent.push_back(*row.integer("sent_bytes"));
  }
  CHECK(steps == std::vector<int64_t>{4, 6, 10, 12, 15});
  CHECK(lengths == std::vector<int64_t>{4, 2, 4, 2, 3});
  constexpr int64_t kDense = 4 * 604, kSent = 128 + 80;  // as plan_test.cpp has them
  CHECK(dense == std::vector<int64_t>{4 * kDense, 2 * kDense, 4 * kDense, 2 * kDense, 3 * kDense});
  CHECK(sent == std::vector<int64_t>(5, kSent));
  // The mean of four steps, not their sum: at first it is above ln 4, and not four times as much.
  const double loss = rows_of_kind(out, "step").front().number("loss").value();
  CHECK((loss > 1.38 && loss < 4));
  const Row final = metrics_of(out).back();
  CHECK(*final.number("mean_sent_bytes") == Approx(5 * kSent / 15.0));
  CHECK(*final.number("mean_ratio") == Approx(15.0 * kDense / (5 * kSent)));
}

TEST_CASE("a run with rounds that is killed after any step and resumed ends as one that was not") {
  const auto variant =
      GENERATE(std::vector<std::string>{kDgc, kOuter, "optimizer.flush_at_end=true"},
               std::vector<std::string>{kDgc, "exchange.algorithm=split_reduce", "exchange.transport=sparse"},
               std::vector<std::string>{kDgc, kOuter, R"(exchange.wire={"values": "int8", "indices": "rice"})",
                                        "exchange.small_tensors=\"dense_fp16\""},
               std::vector<std::string>{kSgd, kOuter, "exchange.dense_values=fp16"},
               std::vector<std::string>{kDgc, kOuter, "exchange.wait=1000", "ranks=2", "workers_per_rank=2"},
               std::vector<std::string>{kSgd, "ranks=2", "workers_per_rank=2", R"(model.freeze=["0", "1.bias"])"});
  CAPTURE(variant);
  const TempRun whole;
  train(tiny_config(variant + std::vector<std::string>{kFour, "checkpoint.every_steps=1", "checkpoint.keep=100"}),
        {.out = whole.path() / "run"});
  const auto truth = timeless_rows(whole.path() / "run");
  REQUIRE(truth.size() == 6 + 3 + 1);
  for (const int64_t stop : {3, 6, 8}) {
    CAPTURE(stop);
    const TempRun killed;
    fs::copy(whole.path() / "run", killed.path() / "run", fs::copy_options::recursive);
    kill_after(killed.path() / "run", stop);
    // The same workers, shared out to ranks in another way.
    train(tiny_config(variant + std::vector<std::string>{kFour} + on_ranks_as(2, 2)),
          {.out = killed.path() / "run", .resume = true});
    CHECK(timeless_rows(killed.path() / "run") == truth);
    CHECK_THAT(killed.read("run/log.txt"), !Catch::Contains("there is no row"));
  }
}

TEST_CASE("a recurrent state goes on within a round, and a run with rounds resumes in it") {
  const TinyText text;
  const TempRun whole;
  const auto config = [&](const std::vector<std::string>& more) {
    return text.config(std::vector<std::string>{kDgc, kFour} + more);
  };
  train(config({"checkpoint.every_steps=3", "checkpoint.keep=100"}), {.out = whole.path() / "run"});
  const auto truth = timeless_rows(whole.path() / "run");
  const TempRun killed;
  fs::copy(whole.path() / "run", killed.path() / "run", fs::copy_options::recursive);
  kill_after(killed.path() / "run", 3);
  train(config({}), {.out = killed.path() / "run", .resume = true});
  CHECK(timeless_rows(killed.path() / "run") == truth);
}

TEST_CASE("another number of workers can go on behind an exchange, and not within a round") {
  const TempRun run;
  train(tiny_config({kFour, "checkpoint.every_steps=5", "training.max_steps=11", "checkpoint.keep=9"}),
        {.out = run.path() / "run"});
  const auto resume = [&](const std::string& key) {
    train(tiny_config({kFour, "workers_per_rank=2", "checkpoint.keep=9", key}),
          {.out = run.path() / "run", .resume = true});
  };
  kill_after(run.path() / "run", 10);
  CHECK_NOTHROW(resume("training.max_steps=11"));
  kill_after(run.path() / "run", 5);
  CHECK_THROWS_AS(resume("training.max_steps=11"), UserError);
  CHECK_THROWS_WITH(resume("training.max_steps=11"),
                    Catch::Contains("lies between two exchanges") && Catch::Contains("its 4 workers"));
  CHECK_THROWS_WITH(
      train(tiny_config({kFour, "training.max_steps=5"}), {.out = run.path() / "run", .resume = true}),
      Catch::Contains("training.max_steps = 5 ends it between two exchanges") && Catch::Contains("above 5"));
}

TEST_CASE("a round with a gradient that is not finite leaves nothing behind on any worker") {
  const std::string optimizer = GENERATE(kDgc, kSgd);
  const auto [ranks, workers] = GENERATE(table<int, int>({{1, 4}, {4, 1}}));
  const Config config =
      tiny_config(std::vector<std::string>{optimizer, "exchange.every_steps=2"} + on_ranks_as(ranks, workers));
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  // The first sample of the second worker in the third step, which begins the second round.
  std::vector<int32_t> samples;
  Sampler({train->size(), 4, 4, config.seed}).indices(2, 1, samples);
  const Poisoned poisoned(*train, samples[0]);
  const TempRun before, behind;
  dgc::on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {poisoned, *test}, backend, communicator);
    const std::vector<StepMetrics> rows = make_steps(rank, 2);
    save_and_hash(rank, before);
    const std::vector<StepMetrics> bad = make_steps(rank, 2);
    save_and_hash(rank, behind);
    const std::vector<StepMetrics> good = make_steps(rank, 2);
    rank.check_replicas();
    const EvalMetrics eval = rank.evaluate();
    if (communicator.rank() != 0) return;
    REQUIRE((rows.size() == 1 && bad.size() == 1 && good.size() == 1));
    CHECK((!rows[0].skipped && bad[0].skipped && !good[0].skipped));
    CHECK(std::isfinite(good[0].loss));
    CHECK(std::isfinite(eval.measures[kTestLoss]));
    const auto kept = newest_checkpoint(before.path()), left = newest_checkpoint(behind.path());
    std::vector<std::string> files = {"weights.safetensors", kSharedFile};
    for (int worker = 0; worker < 4; ++worker) files.push_back(worker_file(worker));
    for (const std::string& file : files) {
      const auto was = kept->open(file), is = left->open(file);
      for (const auto& [name, tensor] : was.tensors()) {
        CAPTURE(file, name);
        if (name.ends_with("num_batches_tracked")) continue;
        const bool forgotten = name.starts_with("local_momentum.");
        const std::string expected = forgotten ? std::string(tensor.bytes.size(), '\0') : std::string(tensor.bytes);
        CHECK(is.tensors().at(name).bytes == expected);
      }
      CHECK(was.tensors().size() == is.tensors().size());
    }
  });
}

TEST_CASE("a signal within a round is heard at its end, where the run stops and goes on in the same bits") {
  const Config config = tiny_config({kFour});
  const std::vector<std::string> truth = outcome_after(config, 12).saved;
  const TempRun run;
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    const InterruptGuard guard;
    make_steps(rank, 2);
    signal_this_process(SIGTERM);
    CHECK(make_steps(rank, 1).empty());
    CHECK_FALSE(rank.asked_to_stop());
    CHECK(make_steps(rank, 1).size() == 1);
    CHECK(rank.asked_to_stop());
    save_and_hash(rank, run);
  });
  const InterruptGuard forgets;  // the signal, as every guard does when it begins
  on_ranks_of(config, [&](Rank& rank, Communicator&) {
    rank.restore(*newest_checkpoint(run.path()));
    CHECK(rank.step() == 4);
    make_steps(rank, 8);
    CHECK(save_and_hash(rank, run) == truth);
  });
}

}  // namespace dgc
