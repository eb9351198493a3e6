#include "run/run_directory.h"

#include <catch.hpp>
#include <chrono>
#include <filesystem>

#include "run/metrics.h"
#include "tests/config/example.h"
#include "tests/support/run_files.h"

namespace dgc {
namespace {

using test::example_step;
using test::TempRun;

void save_evaluations(const TempRun& run, int64_t step, int64_t since_best) {
  CheckpointStore store(run.path());
  store.begin(step);
  Manifest manifest{.step = step, .epoch = 0, .values = {}, .files = {}};
  manifest.values.set("best_step", int64_t{1}).set("since_best", since_best);
  store.commit(manifest, 1);
}

// A run that has ended at step 12, in the middle of its third epoch of 5 steps, or, with 15, behind it.
void write_end(const TempRun& run, int64_t step) {
  MetricsWriter writer(run.path(), {0});
  writer.write(example_step(step));
  writer.write(FinalMetrics{.eval = {.step = step, .epoch = static_cast<double>(step) / 5}});
}

Config asking(int64_t epochs, std::optional<int64_t> max_steps = {}, std::optional<int64_t> stop_after = {}) {
  Config config;
  config.training.epochs = epochs;
  config.training.max_steps = max_steps;
  config.training.stop_after = stop_after;
  return config;
}

}  // namespace

TEST_CASE("a run has begun with its first step or its first checkpoint") {
  const TempRun run;
  CHECK_FALSE(has_begun(run.path()));
  SECTION("a step") { MetricsWriter(run.path(), {0}).write(example_step(1)); }
  SECTION("a checkpoint") { save_evaluations(run, 1, 0); }
  CHECK(has_begun(run.path()));
}

TEST_CASE("a config.json beside a log, metrics or checkpoints is that of a run, and others are not") {
  const TempRun run;
  const auto config = run.path() / "config.json";
  run.write("config.json", "{}");
  std::filesystem::create_directory(run.path() / "checkpoints");
  run.write("checkpoints/pretrained.safetensors", "somebody's");
  CHECK(run_of_config(config).empty());
  SECTION("a log, where somebody has removed all else") { run.write("log.txt", ""); }
  SECTION("metrics, even without a row") { run.write("metrics.jsonl", ""); }
  SECTION("a checkpoint") { save_evaluations(run, 1, 0); }
  CHECK(run_of_config(config) == run.path());
  CHECK(run_of_config(run.path() / "copy.json").empty());
  CHECK(run_of_config(run.path() / "checkpoints" / "config.json").empty());
  CHECK(run_of_config("config.json").empty());
}

TEST_CASE("a run has ended where its config ends it, in just so many epochs or at least so many steps") {
  const TempRun run;
  MetricsWriter(run.path(), {0}).write(example_step(15));
  CHECK_FALSE(has_ended(run.path(), asking(3)));
  write_end(run, 15);
  CHECK(has_ended(run.path(), asking(3)));
  CHECK_FALSE(has_ended(run.path(), asking(4)));
  CHECK_FALSE(has_ended(run.path(), asking(2)));  // it has gone too far, which is refused elsewhere
  CHECK(has_ended(run.path(), asking(4, 15)));
  CHECK(has_ended(run.path(), asking(4, 5)));
  CHECK_FALSE(has_ended(run.path(), asking(4, 16)));
  write_end(run, 12);
  CHECK_FALSE(has_ended(run.path(), asking(3)));
  CHECK(has_ended(run.path(), asking(3, 12)));
  run.write("metrics.jsonl", "damaged\n" + run.read("metrics.jsonl"));
  CHECK_FALSE(has_ended(run.path(), asking(3, 12)));
}

TEST_CASE("that a run has ended as its loss no longer fell, its newest checkpoint tells, if there is one") {
  const TempRun run;
  run.write("config.json", resolved_json(test::with({"training.epochs=3"})));
  write_end(run, 15);  // its epochs
  CHECK_FALSE(has_ended(run.path(), asking(4, {}, 2)));
  write_end(run, 12);
  CHECK(has_ended(run.path(), asking(3, {}, 2)));
  CHECK_FALSE(has_ended(run.path(), asking(3)));
  save_evaluations(run, 10, 2);  // the last step was not saved
  CHECK_FALSE(has_ended(run.path(), asking(3, {}, 2)));
  save_evaluations(run, 12, 2);
  CHECK(has_ended(run.path(), asking(3, {}, 2)));
  CHECK_FALSE(has_ended(run.path(), asking(3, {}, 3)));
  run.write("checkpoints/step-000000012/manifest.json", "{}");
  CHECK_FALSE(has_ended(run.path(), asking(3, {}, 2)));
}

TEST_CASE("config.json has the paths of data and of a start's weights absolute, whatever folder reads it") {
  const TempRun run;
  const auto here = std::filesystem::current_path();
  {
    RunDirectory directory(test::with({"data.path=pictures", "model.init_from=weights/../start.safetensors"}),
                           {.out = run.path()}, nullptr, {});
    directory.begin();
    directory.describe();
  }
  const Config read = run_config(run.path());
  CHECK(read.data.path == (here / "pictures").string());
  CHECK(read.model.init_from == (here / "start.safetensors").string());
}

TEST_CASE("what is no run directory is refused with what it is") {
  const TempRun folder;
  std::filesystem::create_directories(folder.path() / "study/dgc/seed1");
  std::filesystem::create_directory(folder.path() / "notes");
  folder.write("study/dgc/seed1/config.json", resolved_json(test::with({})));
  folder.write("notes/to_do", "");
  const auto said = [&](const std::string& name) {
    const std::string given = (folder.path() / name).string(), begin = given + " is not a run directory: ";
    const std::string sentence = test::refusal([&] { run_config(given); });
    CAPTURE(sentence);
    REQUIRE(sentence.starts_with(begin));
    return sentence.substr(begin.size());
  };
  const std::string study = (folder.path() / "study").string();
  CHECK(said("nowhere") == "there is no such folder");
  CHECK(said("notes") == "it has no config.json");
  CHECK(said("notes/to_do") == "it has no config.json");
  CHECK(said("study/dgc/seed1/config.json") == "it is a file of one; give " + study + "/dgc/seed1");
  CHECK(said("study") == "it holds those of a study; give one of them, or " + study + "/*/seed* for a report of all");
}

TEST_CASE("rows are set aside where the run had come farther than to where its first checkpoint was due") {
  const auto [overrides, step, farther] = GENERATE(table<std::vector<std::string>, int64_t, bool>({
      {{"checkpoint.every_epochs=1"}, 10, false},  // 10 steps an epoch
      {{"checkpoint.every_epochs=1"}, 11, true},
      {{"checkpoint.every_epochs=2"}, 20, false},
      {{"checkpoint.every_epochs=0"}, 11, false},
      {{"checkpoint.every_epochs=0", "checkpoint.every_steps=4"}, 4, false},
      {{"checkpoint.every_epochs=0", "checkpoint.every_steps=4"}, 5, true},
  }));
  CAPTURE(overrides, step);
  const TempRun run;
  const Config config = test::with(overrides);
  run.write("config.json", resolved_json(config));
  MetricsWriter(run.path(), {0}).write(example_step(step));
  const std::string rows = run.read("metrics.jsonl");
  RunDirectory(config, {.out = run.path(), .resume = true}, nullptr, {}).begin();
  CHECK(run.read("metrics.jsonl.1") == (farther ? rows : ""));
  CHECK(run.read("metrics.jsonl") == (farther ? "" : rows));
}

TEST_CASE("a resumed run goes on from a checkpoint that a killed save had moved aside") {
  const TempRun run;
  const Config config = test::with({});
  run.write("config.json", resolved_json(config));
  save_evaluations(run, 7, 0);
  std::filesystem::rename(run.path() / "checkpoints/step-000000007", run.path() / "checkpoints/.saving-7-replaced");
  const RunDirectory directory(config, {.out = run.path(), .resume = true}, nullptr, {});
  REQUIRE(directory.resumed_from());
  CHECK(directory.resumed_from()->manifest().step == 7);
}

TEST_CASE("an ended run whose last step was not saved makes its last steps again") {
  const TempRun run;
  const Config config = test::with({"training.max_steps=12"});
  run.write("config.json", resolved_json(config));
  write_end(run, 12);
  const auto finished_from = [&](int64_t step) {
    save_evaluations(run, step, 0);
    const RunDirectory directory(config, {.out = run.path(), .resume = true}, nullptr, {});
    CHECK(directory.resumed_from()->manifest().step == step);
    return directory.finished();
  };
  CHECK_FALSE(finished_from(10));
  CHECK(finished_from(12));
}

TEST_CASE("a run removes what killed writers have left in its folder") {
  const TempRun run;
  run.write(".new-0badcafe", "half a file");
  std::filesystem::last_write_time(run.path() / ".new-0badcafe",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  RunDirectory(test::with({}), {.out = run.path()}, nullptr, {}).begin();
  CHECK_FALSE(std::filesystem::exists(run.path() / ".new-0badcafe"));
}

}  // namespace dgc
