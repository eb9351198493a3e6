#include <catch.hpp>

#include "tensor/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_speech.h"
#include "tools/evaluate.h"

// Runs that hold back a part of their training set, and what goes by it.
namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

const std::string kSplit = "data.validation_split=0.2";
// More noise than signal, and a rate that does not fall: soon the model learns the training set by heart.
const std::vector<std::string> kOverfits = {kSplit,
                                            "data.noise=4",
                                            "training.epochs=8",
                                            kSgd,
                                            R"(learning_rate={"type": "constant", "base": 0.05})",
                                            "checkpoint.keep=1"};

std::vector<std::string> plus(std::vector<std::string> overrides, const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

// The step of the evaluation with the least validation loss.
int64_t best_step(const fs::path& run) {
  int64_t step = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const Row& row : rows_of_kind(run, "eval")) {
    if (row.number("valid_loss").value() >= least) continue;
    least = row.number("valid_loss").value();
    step = row.integer("step").value();
  }
  return step;
}

}  // namespace

TEST_CASE("images that are held back are evaluated during training, and the test set at its end") {
  const TempRun folder;
  const fs::path run = train(tiny_config({kSplit}), {.out = folder.path() / "run"});
  CHECK_THAT(read_file(run / "log.txt"),
             Catch::Contains("80 training, 20 validation and 30 test images of 4 classes") &&
                 Catch::Contains("validation accuracy"));
  const auto evals = rows_of_kind(run, "eval");
  REQUIRE(evals.size() == 3);
  for (const Row& row : evals) {
    CHECK(row.number("valid_loss").has_value());
    CHECK(row.number("valid_accuracy").has_value());
    CHECK(row.number("test_loss").has_value() == (&row == &evals.back()));
  }
  const Evaluation again = evaluate_run(run, {});
  for (const char* key : {"test_loss", "test_accuracy", "valid_loss", "valid_accuracy", "valid_top5"}) {
    const auto& all = again.metrics.measures.all();
    const auto found =
        std::ranges::find_if(all, [&](const auto& measure) { return measure.first->key == std::string(key); });
    REQUIRE(found != all.end());
    CHECK(found->second == metrics_of(run).back().number(key));
  }

  const auto ranks = {"ranks=2", "workers_per_rank=2"};
  std::vector<std::string> split = {kSplit};
  split.insert(split.end(), ranks.begin(), ranks.end());
  const fs::path spread = train(tiny_config(split), {.out = folder.path() / "spread"});
  CHECK(timeless_rows(spread) == timeless_rows(run));
}

TEST_CASE("utterances that are held back are evaluated as those of the test set") {
  const TinySpeech speech;
  const fs::path run = train(speech.config({kSplit}), {.out = speech.path("run")});
  const auto evals = rows_of_kind(run, "eval");
  REQUIRE(evals.size() == 2);
  CHECK(evals[0].number("valid_wer").has_value());
  CHECK(evals[0].find("wer") == nullptr);
  CHECK(evals[1].number("valid_cer").has_value());
  CHECK(evals[1].number("cer").has_value());
  CHECK_THAT(read_file(run / "log.txt"), Catch::Contains("21 training, 5 validation and 6 test utterances"));
  size_t told = 0;
  const Evaluation again =
      evaluate_run(run, {.scoring = {.told = [&](const std::string&, const std::string&) { ++told; }}});
  CHECK(told == 6);
  CHECK(again.metrics.measures[kValidLoss] == evals[1].number("valid_loss"));
}

TEST_CASE("the best checkpoint stays, and can be evaluated") {
  const TempRun folder;
  const Config config = tiny_config(plus(kOverfits, {"checkpoint.best=true"}));
  const fs::path run = train(config, {.out = folder.path() / "run"});
  const int64_t best = best_step(run), last = metrics_of(run).back().integer("step").value();
  REQUIRE(best < last);
  REQUIRE(CheckpointStore(run).list().size() == 2);
  const Evaluation evaluated = evaluate_run(run, {.best = true});
  CHECK(evaluated.metrics.step == best);
  for (const Row& row : rows_of_kind(run, "eval")) {
    if (row.integer("step") == best) CHECK(evaluated.metrics.measures[kValidLoss] == row.number("valid_loss"));
  }
  CHECK(evaluate_run(run, {}).metrics.step == last);

  const fs::path plain = train(tiny_config(kOverfits), {.out = folder.path() / "plain"});
  CHECK(final_hash(plain) == final_hash(run));
  CHECK(CheckpointStore(plain).list().size() == 1);
  CHECK_THROWS_WITH(evaluate_run(plain, {.best = true}), Catch::Contains("keeps no best checkpoint"));
}

TEST_CASE("a run ends when its validation loss has not fallen for so long, also after it was killed") {
  const TempRun folder;
  const auto overrides = plus(kOverfits, {"training.stop_after=2", "checkpoint.best=true"});
  const fs::path run = train(tiny_config(overrides), {.out = folder.path() / "run"});
  const int64_t best = best_step(run), end = metrics_of(run).back().integer("step").value();
  const int64_t epoch = rows_of_kind(run, "eval").front().integer("step").value();
  CHECK(metrics_of(run).back().text("kind") == "final");
  REQUIRE(end < 8 * epoch);
  CHECK(end == best + 2 * epoch);
  CHECK_THAT(read_file(run / "log.txt"), Catch::Contains("the validation loss has not fallen since step"));
  CHECK(rows_of_kind(run, "eval").back().find("test_loss") != nullptr);

  const auto truth = timeless_rows(run);
  train(tiny_config(overrides), {.out = run, .resume = true});  // it is finished
  CHECK(timeless_rows(run) == truth);

  const fs::path killed = folder.path() / "killed";
  train(tiny_config(plus(overrides, {"checkpoint.every_steps=1", "checkpoint.keep=100"})), {.out = killed});
  for (const int64_t step : {end, best + epoch + 1, best, int64_t{1}}) {
    kill_after(killed, step);
    fs::copy(killed, folder.path() / "copy", fs::copy_options::recursive);
    train(tiny_config(overrides), {.out = folder.path() / "copy", .resume = true});
    CHECK(timeless_rows(folder.path() / "copy") == truth);
    fs::remove_all(folder.path() / "copy");
  }
}

TEST_CASE("a run that stops early sends its residuals before it is tested") {
  const TempRun folder;
  const auto overrides = plus(kOverfits, {kDgc, "training.stop_after=1", "optimizer.flush_at_end=true"});
  const fs::path run = train(tiny_config(overrides), {.out = folder.path() / "run"});
  const auto truth = timeless_rows(run);
  CHECK(metrics_of(run).back().text("kind") == "final");
  train(tiny_config(overrides), {.out = run, .resume = true});
  CHECK(timeless_rows(run) == truth);
}

TEST_CASE("every evaluation that is the best so far is saved, also between planned checkpoints, and no other") {
  const TempRun folder;
  const fs::path run =
      train(tiny_config(plus(kOverfits, {"checkpoint.best=true", "checkpoint.every_epochs=8", "checkpoint.keep=100"})),
            {.out = folder.path() / "run"});
  double least = std::numeric_limits<double>::infinity();
  std::vector<int64_t> expected, saved;
  for (const Row& row : rows_of_kind(run, "eval")) {
    if (row.number("valid_loss").value() >= least) continue;
    least = row.number("valid_loss").value();
    expected.push_back(row.integer("step").value());
  }
  const int64_t last = metrics_of(run).back().integer("step").value();
  REQUIRE(best_step(run) < last);
  expected.push_back(last);
  for (const fs::path& checkpoint : CheckpointStore(run).list()) {
    saved.insert(saved.begin(), Checkpoint(checkpoint).manifest().step);
  }
  CHECK(saved == expected);
  CHECK(evaluate_run(run, {.best = true}).metrics.step == best_step(run));
}

TEST_CASE("the last checkpoint can be the best") {
  const TempRun folder;
  const fs::path run = train(tiny_config({kSplit, "checkpoint.best=true"}), {.out = folder.path() / "run"});
  const int64_t last = metrics_of(run).back().integer("step").value();
  CHECK(evaluate_run(run, {.best = true}).metrics.step == last);
}

TEST_CASE("a run that was killed between its early end's checkpoint and its last row ends there") {
  const TempRun folder;
  const Config config = tiny_config(plus(kOverfits, {"training.stop_after=2"}));
  const fs::path run = train(config, {.out = folder.path() / "run"});
  const auto truth = timeless_rows(run);
  const std::string rows = read_file(run / kMetricsFile);
  fs::resize_file(run / kMetricsFile, rows.rfind(R"({"kind":"final")"));
  train(config, {.out = run, .resume = true});
  CHECK(timeless_rows(run) == truth);
}

}  // namespace dgc
