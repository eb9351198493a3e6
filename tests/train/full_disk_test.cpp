#include <dlfcn.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <catch.hpp>
#include <cerrno>

#include "run/output_file.h"
#include "tasks/make.h"
#include "tensor/errors.h"
#include "tests/support/altered_images.h"
#include "tests/support/disk.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"
#include "train/rank.h"
#include "train/rank_training.h"
#include "train/ranks/on_ranks.h"

namespace {

int metrics_syncs = 0;
bool syncs_fail = false;

}  // namespace

// In place of the C library's.
extern "C" int fdatasync(int file) {
  static const auto sync = reinterpret_cast<decltype(&fdatasync)>(dlsym(RTLD_NEXT, "fdatasync"));
  std::error_code unknown;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), unknown);
  if (path.filename() == dgc::kMetricsFile) ++metrics_syncs;
  errno = EDQUOT;
  return syncs_fail ? -1 : sync(file);
}

namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;
using Catch::Contains;

// 8,448 weights: each worker's u and v take 67 KB.
Config larger_config(std::vector<std::string> overrides = {}) {
  overrides.push_back(R"(model.layers=[{"type": "flatten"}, {"type": "linear", "out": 64}, {"type": "relu"},
                                       {"type": "linear", "out": 64}, {"type": "linear", "out": 4}])");
  overrides.push_back("checkpoint.every_steps=4");
  return tiny_config(overrides);
}

constexpr size_t kLittle = 40'000;  // more than metrics, events and log of 18 steps take, less than a worker's file

// Trains to the end, which fails; step 6 stays the newest checkpoint.
void train_without_room(const fs::path& run) {
  std::string said;
  try {
    train(larger_config(), {.out = run, .resume = true});
  } catch (const UserError& error) {
    said = error.what();
  }
  CHECK_THAT(said, Contains("the run has ended at step 18, but its state could not be saved: cannot write") &&
                       Contains(".safetensors: ") &&
                       Contains("the newest checkpoint is " + (run / "checkpoints/step-000000006").string()));
  const std::string log = read_file(run / "log.txt");
  for (const int step : {8, 12}) {
    CHECK_THAT(log, Contains(fmt::format("warning: step {} could not be saved: cannot write", step)));
  }
  CHECK_THAT(log, Contains("; 2 saves in a row have failed") && !Contains("step 16 could not be saved"));
  CHECK_THAT(log, Contains("training goes on, and the newest checkpoint is " + (run / "checkpoints/step-").string()));
  CHECK(metrics_of(run).back().text("kind") == "final");
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    CHECK_THAT(entry.path().filename().string(), Catch::StartsWith("step-"));  // else it would take what room there is
  }
  const auto checkpoints = CheckpointStore(run).list();
  REQUIRE(checkpoints.size() == 2);
  for (const fs::path& checkpoint : checkpoints) CHECK_NOTHROW(Checkpoint(checkpoint));
  CHECK(Checkpoint(checkpoints[0]).manifest().step == 6);
}

// A set of which so many samples can be read.
class Unreadable final : public AlteredImages {
 public:
  Unreadable(const ImageDataset& good, int64_t readable) : AlteredImages(good), left_(readable) {}
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    if (left_-- <= 0) throw UserError("7.png: cannot open it");
    return AlteredImages::read(i, draw, out);
  }

 private:
  mutable std::atomic<int64_t> left_;
};

// Why a training ends that finds no room for its state, and can read so many samples for its steps and its evaluations.
std::string said_without_room(int64_t for_steps, int64_t for_evaluations) {
  const TempRun folder;
  const Config config = larger_config();
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  const Unreadable trained(*train_set, for_steps), tested(*test_set, for_evaluations);
  RunDirectory run(config, {.out = folder.path() / "run"}, nullptr, {});
  run.begin();
  const FileSizeLimit limit(kLittle);
  try {
    on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
      RankTraining training(config, run, {trained, tested}, backend, communicator);
      training.begin();
      training.train();
    });
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a training that ends for a file, and cannot save its state, names both") {
  const auto [for_steps, for_evaluations, step] =
      GENERATE(table<int64_t, int64_t, std::string>({{1000, 0, "6"}, {50, 1000, "3"}}));
  CHECK_THAT(
      said_without_room(for_steps, for_evaluations),
      Catch::StartsWith("7.png: cannot open it; and the state of step " + step + " could not be saved: cannot write") &&
          Contains("there is no checkpoint yet: make room, and --resume trains again from the beginning"));
}

TEST_CASE("records that a full device does not take are no error, and are said once") {
  const TempRun run;
  {
    const RunLog log(run.path());
    OutputFile file("/dev/full");
    for (int i = 0; i < 3; ++i) CHECK_NOTHROW(file.append("a record\n"));
  }
  const std::string log = run.read("log.txt");
  CHECK(occurrences(log, "/dev/full: cannot be written: No space left on device; the run goes on") == 1);
  CHECK(occurrences(log, "/dev/full: its last 27 bytes could not be written") == 1);
}

TEST_CASE("of the records that wait for room no more are kept than memory has room for, and all are counted") {
  const TempRun run;
  {
    const RunLog log(run.path());
    OutputFile file("/dev/full");
    for (int i = 0; i < 20; ++i) file.append(std::string(1 << 20, 'x'));
    CHECK(file.waiting() == 16 << 20);
  }
  CHECK_THAT(run.read("log.txt"), Contains(fmt::format("/dev/full: its last {} bytes could not be written", 20 << 20)));
}

TEST_CASE("records wait for room and come out whole and in order") {
  const TempRun run;
  std::optional<RunLog> log(run.path());
  std::string expected = "what was there\n";
  run.write("records", expected);
  OutputFile file(run.path() / "records");
  const auto append = [&](int record) {
    const std::string line = fmt::format("record {}\n", record);
    expected += line;
    file.append(line);
  };
  append(0);
  for (int times = 0; times < 2; ++times) {
    {
      const std::string before = expected;
      const FileSizeLimit full(expected.size() + 12);  // in the middle of a record
      for (int i = 1; i < 5; ++i) append(i);
      CHECK(run.read("records") == before + "record 1\n");  // no part of the next, if somebody empties the file now
    }
    append(5);
    CHECK(run.read("records") == expected);
  }
  log.reset();
  CHECK(occurrences(run.read("log.txt"), "records: cannot be written: File too large") == 2);
  CHECK(occurrences(run.read("log.txt"), "records: can be written again") == 2);
}

TEST_CASE("records follow the name of a file that is removed or replaced, and stay in one that is moved") {
  const TempRun run;
  std::optional<RunLog> log(run.path());
  const fs::path path = run.path() / "records", moved = run.path() / "moved";
  OutputFile file(path);
  const auto next = [&](const std::string& record) {
    file.follow_name();
    file.append(record);
  };
  next("1\n");
  fs::rename(path, moved);
  next("2\n");
  CHECK(run.read("moved") == "1\n2\n");
  fs::remove(moved);
  next("3\n");
  CHECK(run.read("records") == "3\n");
  run.write("other", "0\n");
  fs::rename(run.path() / "other", path);  // as an editor does
  next("4\n");
  CHECK(run.read("records") == "0\n4\n");
  fs::remove(path);
  fs::create_directory(path);
  CHECK_NOTHROW(next("5\n"));
  fs::remove(path);
  run.write("other", "0\n");
  fs::create_symlink("other", path);
  CHECK_NOTHROW(next("6\n"));
  CHECK(run.read("other") == "0\n");
  fs::remove(path);
  next("7\n");
  CHECK(run.read("records") == "7\n");
  log.reset();
  const std::string lost = "records: another program has removed or replaced it";
  CHECK(occurrences(run.read("log.txt"), lost + "; what was written since is lost") == 3);
  CHECK(occurrences(run.read("log.txt"), lost + ", and no file can be written there: Is a directory; what") == 1);
  CHECK(occurrences(run.read("log.txt"), lost) == 4);
}

TEST_CASE("the rows of a checkpoint are on the disk before it is saved, and that they may not be is said once") {
  const TempRun temp;
  syncs_fail = GENERATE(false, true);
  metrics_syncs = 0;
  const fs::path run =
      train(tiny_config({"training.max_steps=6", "checkpoint.every_steps=2"}), {.out = temp.path() / "run"});
  const bool failed = std::exchange(syncs_fail, false);
  CHECK(metrics_syncs >= 3);
  CHECK(occurrences(read_file(run / "log.txt"),
                    "metrics.jsonl: what was written last may be lost: Disk quota exceeded") == (failed ? 1 : 0));
}

TEST_CASE("a log on a full device is no error") {
  const TempRun run;
  fs::create_symlink("/dev/full", run.path() / "log.txt");
  std::optional<RunLog> log(run.path());
  for (int i = 0; i < 3; ++i) CHECK_NOTHROW(spdlog::info("a line for a full disk"));
  CHECK_NOTHROW(log.reset());
}

TEST_CASE("checkpoints that files' greatest size forbids are warnings, and the last one an error") {
  const TempRun temp;
  const auto run = temp.path() / "run", whole = temp.path() / "whole";
  train(larger_config(), {.out = whole});
  train(larger_config({"training.max_steps=6"}), {.out = run});
  {
    const FileSizeLimit limit(kLittle);
    train_without_room(run);
  }
  train(larger_config(), {.out = run, .resume = true});
  CHECK(timeless_rows(run) == timeless_rows(whole));
}

TEST_CASE("an ended run of which nothing could be saved keeps its result, and is trained again as its error says") {
  const TempRun temp;
  const auto run = temp.path() / "run";
  const auto said = [&](const TrainOptions& options) -> std::string {
    try {
      train(larger_config({"training.max_steps=2"}), options);
    } catch (const UserError& error) {
      return error.what();
    }
    return "nothing";
  };
  {
    const FileSizeLimit limit(kLittle);
    CHECK_THAT(said({.out = run}), Contains("the run has ended at step 2, but its state could not be saved") &&
                                       Contains("there is no checkpoint yet: make room, and --overwrite trains it"));
  }
  CHECK_THAT(said({.out = run, .resume = true}), Contains("no checkpoint to go on from: --overwrite trains it again"));
  CHECK(said({.out = run, .overwrite = true}) == "nothing");
  CHECK(CheckpointStore(run).list().size() == 1);
}

TEST_CASE("checkpoints that do not fit on the disk are warnings, and the last one an error") {
  const TempRun temp;
  const SmallDisk disk(temp.path() / "disk", 8 << 20);
  if (!disk.mounted()) {
    WARN("skipped: a file system of its own takes the right to mount one");
    return;
  }
  const auto run = temp.path() / "disk" / "run", whole = temp.path() / "whole";
  train(larger_config(), {.out = whole});
  train(larger_config({"training.max_steps=6"}), {.out = run});
  disk.fill(kLittle);
  train_without_room(run);
  disk.make_room();
  train(larger_config(), {.out = run, .resume = true});
  CHECK(timeless_rows(run) == timeless_rows(whole));
}

TEST_CASE("a rank that cannot write keeps all from publishing, and is named everywhere") {
  const TempRun run, elsewhere;
  const Config config = tiny_config({"ranks=3", "workers_per_rank=1"});
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  std::vector<std::string> said(3);
  dgc::on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, {*train_set, *test_set}, backend, communicator);
    CheckpointStore good(run.path()), bad(elsewhere.path());  // where nobody makes a folder to write to
    DGC_CHECK(rank.save(good, 2).empty(), "there is room");
    rank.train_step();
    rank.finish_steps();
    rank.next_metrics();
    said[static_cast<size_t>(communicator.rank())] = rank.save(communicator.rank() == 1 ? bad : good, 2);
  });
  const std::string expected =
      fmt::format("rank 1: cannot create {}: No such file or directory",
                  (elsewhere.path() / "checkpoints/.saving-1/worker-0001.safetensors").string());
  CHECK(said == std::vector<std::string>(3, expected));
  CHECK(CheckpointStore(run.path()).list().size() == 1);
  CHECK(newest_checkpoint(run.path())->manifest().step == 0);
}

TEST_CASE("a run whose rows could not be written has not ended well") {
  const TempRun folder;
  const Config config = tiny_config();
  const auto train_set = make_images(config, Split::train), test_set = make_images(config, Split::test);
  RunDirectory run(config, {.out = folder.path() / "run"}, nullptr, {});
  run.begin();
  fs::create_symlink("/dev/full", run.path() / kMetricsFile);
  const auto trained = [&] {
    on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
      RankTraining training(config, run, {*train_set, *test_set}, backend, communicator);
      training.begin();
      training.train();
    });
  };
  CHECK_THROWS_WITH(trained(), Contains("metrics.jsonl could not be written: make room; --resume writes the result"));
}

}  // namespace dgc
