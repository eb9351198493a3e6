#include "train/divergence.h"

#include <spdlog/spdlog.h>

#include <catch.hpp>
#include <cstring>

#include "tasks/make.h"
#include "tensor/errors.h"
#include "tests/support/altered_images.h"
#include "tests/support/rank_steps.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_text.h"
#include "train/ranks/on_ranks.h"
#include "train/reporter.h"

// Runs whose numbers are no longer finite.
namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;
using Catch::Contains;

std::vector<std::string> diverging(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {R"(learning_rate={"type": "constant", "base": 1e6})",
                             R"(model.layers=[{"type": "flatten"}, {"type": "linear", "out": 64},
                                {"type": "linear", "out": 64}, {"type": "linear", "out": 4}])"});
  return more;
}

std::string refusal(const Config& config, const TrainOptions& options) {
  try {
    train(config, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::vector<bool> skipped(const fs::path& run) {
  std::vector<bool> all;
  for (const Row& row : rows_of_kind(run, "step")) all.push_back(row.boolean("skipped").value());
  return all;
}

// Of the steps that were skipped up to the end.
size_t first_of_last_skipped(const std::vector<bool>& all) {
  size_t first = all.size();
  while (first > 0 && all[first - 1]) --first;
  return first + 1;
}

bool has_finite_weights(const fs::path& checkpoint) {
  const std::string bytes = read_file(checkpoint / "weights.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (size_t at = sizeof(header) + header; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a run that diverges ends with a sentence, three lines in the log, and its last good checkpoint") {
  const TempRun temp;
  const fs::path run = temp.path() / "run";
  const auto spread = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"ranks=2", "workers_per_rank=2"});
  auto overrides = diverging({GENERATE(kSgd, kDgc), "checkpoint.every_steps=1", "checkpoint.keep=2"});
  overrides.insert(overrides.end(), spread.begin(), spread.end());
  const Config config = tiny_config(overrides);
  const std::string said = refusal(config, {.out = run});

  const std::vector<bool> steps = skipped(run);
  REQUIRE(steps.size() == 18);
  const size_t first = first_of_last_skipped(steps);
  REQUIRE(first > 1);
  REQUIRE(first < 16);
  CHECK_THAT(said,
             Contains(fmt::format("the run has diverged: from step {} on gradients were not finite, and all steps "
                                  "up to the last one, 18, were skipped",
                                  first)));
  CHECK(rows_of_kind(run, "step").back().integer("sent_bytes").value() > 0);  // the decision is the device's
  CHECK(metrics_of(run).back().text("kind") == "final");

  const std::string log = read_file(run / "log.txt");
  CHECK(occurrences(log, "a gradient is not finite") == 1);
  CHECK(occurrences(log, "the test loss is not finite; where it stays so, the run ends with exit code 2") == 1);
  CHECK_THAT(log, Contains(fmt::format("step {}: a gradient is not finite", first)));
  CHECK_THAT(log, Contains(fmt::format("steps {} to 18, {} in all, were skipped, as", first, 19 - first)));

  const auto sound = CheckpointStore(run).newest_sound();
  REQUIRE(sound);
  CHECK_THAT(said, Contains("the last good checkpoint is " + sound->string()));
  CHECK(Checkpoint(*sound).manifest().step < static_cast<int64_t>(first));
  CHECK(has_finite_weights(*sound));
  const auto checkpoints = CheckpointStore(run).list();
  REQUIRE(checkpoints.size() == 3);
  CHECK(checkpoints[2] == *sound);

  CHECK(refusal(config, {.out = run, .resume = true}) == said);
  CHECK(read_file(run / "log.txt") == log);
}

TEST_CASE("a run whose weights are not finite after its last step has diverged too") {
  const TempRun temp;
  const auto whole = temp.path() / "whole", run = temp.path() / "run";
  refusal(tiny_config(diverging({kSgd})), {.out = whole});
  const size_t first = first_of_last_skipped(skipped(whole));
  const std::string said =
      refusal(tiny_config(diverging({kSgd, fmt::format("training.max_steps={}", first - 1)})), {.out = run});
  CHECK_THAT(said, Contains(fmt::format("at its end, step {}, its weights, its loss or its perplexity are not finite",
                                        first - 1)));
  CHECK_THAT(said, Contains("there is no good checkpoint"));
}

TEST_CASE("a language model whose perplexity is infinite has diverged, however finite its loss is") {
  const TempRun temp;
  const TinyText text;
  const Config config =
      text.config({R"(optimizer={"type": "sgd"})", R"(learning_rate={"type": "constant", "base": 1e6})",
                   "checkpoint.every_epochs=1", "checkpoint.keep=9"});
  CHECK_THAT(
      refusal(config, {.out = temp.path() / "run"}),
      Contains("its weights, its loss or its perplexity are not finite") && Contains("there is no good checkpoint"));
  const Row final = rows_of_kind(temp.path() / "run", "final").at(0);
  CHECK(final.number("test_loss").value() > 709);
  CHECK_FALSE(final.number("test_perplexity").has_value());
}

TEST_CASE("so many skipped steps in a row end the run, at the same step after a resume") {
  const TempRun temp;
  const auto spread = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"ranks=2", "workers_per_rank=2"});
  auto overrides = diverging({GENERATE(kSgd, kDgc), "checkpoint.every_steps=1", "checkpoint.keep=100"});
  overrides.insert(overrides.end(), spread.begin(), spread.end());
  refusal(tiny_config(overrides), {.out = temp.path() / "whole"});
  const std::vector<bool> truth = skipped(temp.path() / "whole");
  size_t end = 0;  // the first step that is the third skipped one in a row
  for (size_t i = 3; i <= truth.size() && end == 0; ++i) {
    if (truth[i - 1] && truth[i - 2] && truth[i - 3]) end = i;
  }
  REQUIRE(end > 3);
  REQUIRE(end < truth.size());

  overrides.emplace_back("optimizer.max_skipped_steps=3");
  const auto run = temp.path() / "limited";
  const std::string last = fmt::format("optimizer.max_skipped_steps: steps {} to {} were all skipped", end - 2, end);
  for (const bool resume : {false, true, true}) {
    const std::string said = refusal(tiny_config(overrides), {.out = run, .resume = resume});
    CHECK_THAT(said, Contains(last) && Contains("the last good checkpoint is"));
    CHECK(skipped(run) == std::vector<bool>(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(end)));
    CHECK(CheckpointStore(run).list().size() == end - 1);
  }
}

TEST_CASE("rounds that are skipped are told by their steps, and so many exchanges in a row end the run") {
  const TempRun temp;
  const fs::path run = temp.path() / "run";
  const std::string said =
      refusal(tiny_config(diverging({kSgd, "exchange.every_steps=3", "optimizer.max_skipped_steps=2"})), {.out = run});
  CHECK_THAT(said, Contains("optimizer.max_skipped_steps: steps 1 to 6 were all skipped"));
  CHECK(skipped(run) == std::vector<bool>{true, true});
  const std::string log = read_file(run / "log.txt");
  CHECK_THAT(log, Contains("steps 1 to 3: a gradient is not finite; all workers skip these steps, and the next ones"));
  CHECK_THAT(log, Contains("steps 1 to 6, 6 in all, were skipped, as"));
}

TEST_CASE("a round that the end of an epoch cuts short counts as one skipped exchange, also after a resume") {
  const TempRun temp;
  const auto overrides = [](int64_t most) {  // epochs of 6 steps, so rounds of 4 and 2 steps
    return tiny_config(diverging({kDgc, "exchange.every_steps=4", fmt::format("optimizer.max_skipped_steps={}", most),
                                  "training.epochs=8", "checkpoint.every_steps=3", "checkpoint.keep=100"}));
  };
  refusal(overrides(100), {.out = temp.path() / "whole"});
  const std::vector<bool> truth = skipped(temp.path() / "whole");
  const size_t first = first_of_last_skipped(truth), last = first + 2;  // the rounds of the limited run, from 1
  REQUIRE(last < truth.size());
  const auto steps = [](size_t rounds) { return rounds / 2 * 6 + rounds % 2 * 4; };
  const std::string all = fmt::format("steps {} to {} were all skipped", steps(first - 1) + 1, steps(last));
  for (const bool resume : {false, true}) {
    CHECK_THAT(refusal(overrides(3), {.out = temp.path() / "run", .resume = resume}), Contains(all));
    CHECK(skipped(temp.path() / "run").size() == last);
  }
}

TEST_CASE("skipped steps are said when they begin and when they end") {
  const TempRun run;
  {
    const RunLog log(run.path());
    const Config config = tiny_config();
    Reporter reporter(config, run.path(), {}, 8, 16);
    for (int64_t step = 1; step <= 8; ++step) {
      StepMetrics metrics = example_step(step);
      metrics.skipped = step == 2 || step == 5 || step == 6 || step == 8;
      reporter.step(metrics, 1);
    }
  }
  const std::string log = run.read("log.txt");
  CHECK(occurrences(log, "a gradient is not finite") == 3);
  CHECK(occurrences(log, " skipped, as gradients were not finite") == 3);
  CHECK_THAT(log, Contains("step 2 was skipped") && Contains("steps 5 to 6, 2 in all, were skipped") &&
                      Contains("step 8 was skipped"));
}

TEST_CASE("a run whose validation loss is not finite is not sound, however finite its test loss is") {
  const Config config = tiny_config();
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  const Poisoned bad(*test_set, 3);
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {*train_set, *test_set, &bad}, backend, communicator);
    make_steps(rank, 1);
    rank.evaluate_all();
    CHECK_FALSE(rank.sound());
  });
}

TEST_CASE("a run that was not sound is not so behind a resume either, until its next evaluation") {
  const TempRun folder;
  const Config config = tiny_config();
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  const Poisoned bad(*test_set, 3);
  const auto sound = [&] { return newest_checkpoint(folder.path())->manifest().values.boolean("sound"); };
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {*train_set, bad}, backend, communicator);
    make_steps(rank, 1);
    rank.evaluate();
    CheckpointStore store(folder.path());
    CHECK(rank.save(store, 9).empty());
    CHECK(sound() == false);
  });
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {*train_set, *test_set}, backend, communicator);
    rank.restore(*newest_checkpoint(folder.path()));
    CHECK_FALSE(rank.sound());
    make_steps(rank, 1);
    CheckpointStore store(folder.path());
    CHECK(rank.save(store, 9).empty());
    CHECK(sound() == false);
    rank.evaluate();
    CHECK(rank.sound());
  });
}

TEST_CASE("a run is not sound with a weight that is not finite, whatever its loss") {
  on_ranks_of(tiny_config(), [](Rank& rank, Communicator&) {
    make_steps(rank, 1);
    rank.evaluate();
    CHECK(rank.sound());
    set_number(rank.weights(), 3, 1, INFINITY);
    CHECK_FALSE(rank.sound());
  });
}

}  // namespace dgc
