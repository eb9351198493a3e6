#include <catch.hpp>

#include "tensor/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_speech.h"
#include "tools/evaluate.h"

// Runs that hold back a part of their training set.
namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;

const std::string kSplit = "data.validation_split=0.2";
}  // namespace

TEST_CASE("images that are held back are evaluated during training, and the test set at its end") {
  const TempRun folder;
  const fs::path run = train(tiny_config({kSplit}), {.out = folder.path() / "run"});
  CHECK_THAT(read_file(run / "log.txt"), Catch::Contains("80 training, 20 validation and 30 test images") &&
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

}  // namespace dgc
