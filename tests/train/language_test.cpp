// A language model from a config to its last row.
#include <catch.hpp>
#include <cmath>

#include "run/vocabulary_file.h"
#include "tensor/errors.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny_text.h"
#include "tools/evaluate.h"
#include "tools/report/report.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

constexpr int64_t kStepsOfEpoch = 9;  // of an epoch

}  // namespace

TEST_CASE("language model: a run says losses and perplexities, and keeps its vocabulary") {
  const TinyText text;
  const fs::path run = train(text.config(), {.out = text.path("run")});
  const auto steps = rows_of_kind(run, "step"), evals = rows_of_kind(run, "eval");
  REQUIRE(steps.size() == 2 * kStepsOfEpoch);
  CHECK(steps[0].number("loss") == Approx(std::log(12)).epsilon(0.05));  // ten words, <eos>, <unk>: near a blind guess
  REQUIRE(evals.size() == 2);
  CHECK(evals[0].number("valid_perplexity") == Approx(std::exp(evals[0].number("valid_loss").value())));
  CHECK(evals[0].number("valid_loss").value() < std::log(12));
  CHECK(evals[0].find("test_loss") == nullptr);  // looked at once, at the end
  const Row final = metrics_of(run).back();
  CHECK(final.text("kind") == "final");
  CHECK(final.number("valid_loss") == evals[1].number("valid_loss"));
  CHECK(final.number("test_perplexity") == Approx(std::exp(final.number("test_loss").value())));
  CHECK(run_vocabulary(run).size() == 12);
  CHECK(run_config(run).model.lstm.vocabulary == 12);
  CHECK_THAT(read_file(run / "log.txt"), Catch::Contains("4 workers x 2 streams of 3 words") &&
                                             Catch::Contains("validation perplexity") && Catch::Contains("words/s"));

  const Evaluation e = evaluate_run(run, {});
  CHECK(e.metrics.measures[kTestLoss] == final.number("test_loss"));
  CHECK(e.metrics.measures[kValidLoss] == final.number("valid_loss"));
  const auto in_small_batches = evaluate_run(run, {.overrides = {"training.eval_batch=1"}, .logits = {}});
  CHECK(in_small_batches.metrics.measures[kTestLoss] == Approx(e.metrics.measures[kTestLoss]).epsilon(1e-5));
  CHECK_THROWS_WITH(evaluate_run(run, {.overrides = {}, .logits = text.path("logits")}), Catch::Contains("--logits"));

  CHECK_THAT(final_table(read_groups({run})), Catch::Contains("test perplexity") &&
                                                  Catch::Contains("validation perplexity") &&
                                                  Catch::Contains("words/s") && !Catch::Contains("accuracy"));
  write_report(read_groups({run}), text.path("report.html"));
  CHECK_THAT(read_file(text.path("report.html")),
             Catch::Contains("<figcaption>Validation perplexity") && !Catch::Contains("<figcaption>Test accuracy"));
}

TEST_CASE("language model: workers give the same bits as threads and one after another") {
  const TinyText text;
  const std::string optimizer =
      GENERATE(std::string(R"({"type": "dgc", "momentum": 0.5, "sparsity": 0.9, "clip_norm": 0.1})"),
               std::string(R"({"type": "sgd", "momentum": 0, "clip_norm": 0.1})"));
  const auto after = [&](int ranks, int workers) {
    std::pair<std::string, double> outcome;
    on_ranks_of(text.config({"optimizer=" + optimizer, fmt::format("ranks={}", ranks),
                             fmt::format("workers_per_rank={}", workers)}),
                [&](Rank& rank, Communicator& communicator) {
                  for (int i = 0; i < kStepsOfEpoch + 3; ++i) step(rank);
                  rank.check_replicas();
                  const EvalMetrics eval = rank.evaluate_all();
                  if (communicator.rank() == 0)
                    outcome = {rank.weights_xxh64(), eval.measures[kValidLoss] + eval.measures[kTestLoss]};
                });
    return outcome;
  };
  const auto one = after(1, 4);
  CHECK(one == after(4, 1));
  CHECK(one == after(2, 2));
  CHECK(one.first != after(1, 2).first);
}

TEST_CASE("language model: a run that is killed after any step and resumed ends as one that was not") {
  const TinyText text;
  const auto variant = GENERATE(
      std::vector<std::string>{},
      std::vector<std::string>{R"(optimizer={"type": "sgd", "clip_norm": 0.25})", "ranks=2", "workers_per_rank=2"});
  auto saving = variant;
  saving.insert(saving.end(), {"checkpoint.every_steps=1", "checkpoint.keep=100"});
  const fs::path whole = train(text.config(saving), {.out = text.path("whole")});
  const auto truth = timeless_rows(whole);
  for (const int64_t stop : {1, 4, 9, 13, 18}) {
    CAPTURE(stop);
    const fs::path killed = text.path(fmt::format("killed{}", stop));
    fs::copy(whole, killed, fs::copy_options::recursive);
    kill_after(killed, stop);
    train(text.config(variant), {.out = killed, .resume = true});
    CHECK(timeless_rows(killed) == truth);
  }
}

TEST_CASE("language model: a checkpoint has the tied matrix under both of its names, as PyTorch's state_dict") {
  const TinyText text;
  const std::string device = "device=auto";  // a GPU's checkpoint too, where there is one
  const fs::path run = train(text.config({device, "training.max_steps=2"}), {.out = text.path("run")});
  const auto checkpoint = newest_checkpoint(run);
  const auto read = [&](const std::string& name) { return loaded(*checkpoint, "weights.safetensors", name, {12, 6}); };
  CHECK(read("encoder.weight") == read("decoder.weight"));
  const fs::path untied =
      train(text.config({device, "training.max_steps=2", "model.tied=false"}), {.out = text.path("untied")});
  const auto other = newest_checkpoint(untied);
  CHECK(loaded(*other, "weights.safetensors", "encoder.weight", {12, 6}) !=
        loaded(*other, "weights.safetensors", "decoder.weight", {12, 6}));
}

TEST_CASE("language model: another vocabulary than the run's is refused, with the word that differs") {
  const TinyText text;
  const fs::path run = train(text.config({"training.max_steps=4"}), {.out = text.path("run")});
  text.write("train.txt", tiny_text(64) + "zebra w1\n");
  CHECK_THROWS_WITH(train(text.config(), {.out = run, .resume = true}),
                    Catch::Contains("run/vocabulary.txt: this run's vocabulary is another one: word "));
  text.write("train.txt", tiny_text(65));
  const std::string words = run_vocabulary(run).text();
  const std::string first = words.substr(0, words.find('\n')), rest = words.substr(words.find('\n') + 1);
  text.write("words.txt", rest + first + "\n");
  CHECK_THROWS_WITH(
      train(text.config({"data.vocabulary=" + text.path("words.txt").string()}), {.out = run, .resume = true}),
      Catch::Contains("run/vocabulary.txt: this run's vocabulary is another one: word 1 is \"" + first));
  write_file(run / "vocabulary.txt", rest + first + "\n");
  CHECK_THROWS_WITH(evaluate_run(run, {}), Catch::Contains("was trained with another vocabulary"));
}

TEST_CASE("language model: what does not fit is said before anything is made") {
  const TinyText text;
  const auto refused = [&](const std::vector<std::string>& overrides) {
    try {
      train(text.config(overrides), {.out = text.path("run")});
    } catch (const UserError& error) {
      CHECK_FALSE(fs::exists(text.path("run")));
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({"data.bptt=1000"}), Catch::Contains("train.txt: one step of 4 batches with 2 streams of 1000"));
  CHECK_THAT(refused({"model.vocabulary=11"}), Catch::Contains("model.vocabulary: 11, but the data has 12 words"));
  CHECK_THAT(refused({"data.eval_streams=1000"}), Catch::Contains("valid.txt") && Catch::Contains("data.eval_streams"));
  CHECK(refused({"model.vocabulary=20", "training.max_steps=1"}).empty());  // room for more is fine
}

TEST_CASE("language model: resumed with other workers, all streams go on at the same share of their length") {
  const TinyText text;
  const fs::path run = train(text.config({"training.max_steps=4"}), {.out = text.path("run")});
  train(text.config({"workers_per_rank=2"}), {.out = run, .resume = true});
  CHECK_THAT(read_file(run / "log.txt"),
             Catch::Contains("8 of 18 steps of epoch 1 count as done, and each stream of text goes on there"));
  CHECK(metrics_of(run).back().number("epoch") == 2.0);
}

}  // namespace dgc
