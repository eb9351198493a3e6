#include <fmt/core.h>

#include <catch.hpp>

#include "config/config.h"
#include "tests/commands/program.h"
#include "tests/data/images/images.h"
#include "tests/support/tiny_text.h"

// What several calls of dgc make of one run directory.
namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

const std::string kLongTraining = fmt::format("training.epochs={}", kLongEpochs);

}  // namespace

TEST_CASE("a second training into a run that is being trained is refused, and disturbs nothing") {
  const Program dgc;
  const Result whole = dgc.run({"train", "tiny.json", "--out", "whole", "--set", kLongTraining});
  REQUIRE(whole.code == 0);
  Child first(dgc.folder(), {"train", "tiny.json", "--out", "run", "--set", kLongTraining});
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  REQUIRE(first.stop());
  const std::string expected = fmt::format("run is being trained by process {} on ", first.pid());
  for (const char* option : {"--resume", "--overwrite", ""}) {
    std::vector<std::string> words = {"train", "tiny.json", "--out", "run", "--set", kLongTraining};
    if (*option != '\0') words.emplace_back(option);
    const TempRun elsewhere;  // for what it says, as the first one still writes where that usually goes
    words[1] = (dgc.folder() / "tiny.json").string();
    words[3] = (dgc.folder() / "run").string();
    Child second(elsewhere.path(), words);
    CHECK(second.wait() == 2);
    CHECK_THAT(second.err(), Contains(expected) && Contains("wait for it to end, or give another --out"));
  }
  first.send(SIGCONT);
  REQUIRE(first.wait() == 0);
  CHECK(dgc.final_hash("run") == dgc.final_hash("whole"));
  CHECK(dgc.rows("run").size() == dgc.rows("whole").size());
}

TEST_CASE("a training whose directory is moved away before its end has succeeded") {
  const Program dgc;
  Child training(dgc.folder(),
                 {"train", "tiny.json", "--out", "run", "--set", kLongTraining, "--set", "checkpoint.every_epochs=0"});
  REQUIRE(wait_until([&] { return !dgc.rows("run").empty(); }));
  REQUIRE(training.stop());
  std::filesystem::rename(dgc.folder() / "run", dgc.folder() / "moved");
  training.send(SIGCONT);
  const int code = training.wait();
  INFO(training.err());
  CHECK(code == 0);
  CHECK_THAT(training.err(), Contains("warning: there is no table of the result: run is not a run directory"));
}

TEST_CASE("a run whose directory is moved away while it is trained goes on in a new one, which can be resumed") {
  const Program dgc;
  REQUIRE(dgc.run(long_run("whole")).code == 0);
  Child training(dgc.folder(), long_run("run"));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  REQUIRE(training.stop());
  std::filesystem::rename(dgc.folder() / "run", dgc.folder() / "moved");
  training.send(SIGTERM);
  training.send(SIGCONT);
  CHECK(training.wait() == 130);
  CHECK_THAT(training.err(), Contains("run was moved or removed") && Contains("the state is saved"));
  CHECK(dgc.run(long_run("run", {"--resume"})).code == 0);
  CHECK(dgc.final_hash("run") == dgc.final_hash("whole"));
}

TEST_CASE("a run whose directory another run has taken leaves it alone") {
  const Program dgc;
  const TempRun elsewhere;
  Child first(dgc.folder(), long_run("run"));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  REQUIRE(first.stop());
  std::filesystem::remove_all(dgc.folder() / "run");
  std::vector<std::string> words = long_run((dgc.folder() / "run").string(), {"--set", "seed=7"});
  words[1] = (dgc.folder() / "tiny.json").string();
  Child second(elsewhere.path(), words);
  const bool is_trained = GENERATE(true, false);
  if (is_trained) {
    REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
    REQUIRE(second.stop());
  } else {
    REQUIRE(second.wait() == 0);
  }
  first.send(SIGTERM);
  first.send(SIGCONT);
  CHECK(first.wait() == 2);
  CHECK_THAT(first.err(), Contains("could not be saved: run ") &&
                              Contains(is_trained ? fmt::format("is being trained by process {}", second.pid())
                                                  : "holds another run by now") &&
                              Contains("; this run's checkpoints went with its folder, which was moved or removed: "
                                       "where it was moved, --resume") &&
                              !Contains("the newest checkpoint is"));
  if (is_trained) {
    second.send(SIGCONT);
    CHECK(second.wait() == 0);
  }
  CHECK_THAT(dgc.read("run/config.json"), Contains("\"seed\": 7"));
  CHECK(dgc.run({"eval", "run"}).code == 0);
}

TEST_CASE("nobody else trains in a run's old folder while the run goes on, which still writes its metrics there") {
  const Program dgc;
  Child training(dgc.folder(), long_run("run", {"--set", "checkpoint.every_steps=2"}));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  std::filesystem::rename(dgc.folder() / "run", dgc.folder() / "moved");
  REQUIRE(wait_until([&] { return std::filesystem::exists(dgc.folder() / "run/checkpoints"); }));
  REQUIRE(training.stop());
  const Result second = dgc.run({"train", "moved/config.json", "--out", "moved", "--resume"});
  CHECK(second.code == 2);
  CHECK_THAT(second.err, Contains(fmt::format("moved is being trained by process {}", training.pid())));
  training.send(SIGCONT);
  CHECK(training.wait() == 0);
  CHECK(dgc.run({"train", "moved/config.json", "--out", "moved", "--resume"}).code == 0);
}

TEST_CASE("a run whose directory the same training has gone on in leaves it alone") {
  const Program dgc;
  Child first(dgc.folder(), long_run("run"));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  REQUIRE(first.stop());
  std::filesystem::remove_all(dgc.folder() / "run");
  REQUIRE(dgc.run(long_run("run")).code == 0);
  const std::string metrics = dgc.read("run/metrics.jsonl");
  first.send(SIGTERM);
  first.send(SIGCONT);
  CHECK(first.wait() == 2);
  CHECK_THAT(first.err(), Contains("run holds a run by now that has come to step ") &&
                              Contains("without this process, which is at step "));
  CHECK(dgc.read("run/metrics.jsonl") == metrics);
  CHECK(dgc.run({"eval", "run"}).code == 0);
}

TEST_CASE("a file that cannot be read ends a run, and costs none of the steps before") {
  const Program dgc;
  const auto name_of = [](const std::string& split, int i) {
    return fmt::format("animals/{}/{}/{}.png", split, i % 2 == 0 ? "ant" : "bee", i);
  };
  constexpr int kImages = 24;
  const auto write_image = [&](const std::string& name, int i) {
    const auto shade = static_cast<uint8_t>(10 * i);
    const Bytes bytes = png_bytes(solid(9, 9, shade, 100, shade), 9, 9);
    std::filesystem::create_directories((dgc.folder() / name).parent_path());
    dgc.write(name, {bytes.begin(), bytes.end()});
  };
  for (const char* split : {"train", "val"}) {
    for (int i = 0; i < kImages; ++i) write_image(name_of(split, i), i);
  }
  const std::string ranks = GENERATE(as<std::string>{}, "workers_per_rank=2", "ranks=2");
  const auto words = [&](const std::string& out) {
    return std::vector<std::string>{"train", "tiny.json",
                                    "--out", out,
                                    "--set", R"(data={"type": "image_folder", "path": "animals", "image_size": 8})",
                                    "--set", R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 2})",
                                    "--set", ranks,
                                    "--set", "training.batch_per_worker=1"};
  };
  REQUIRE(dgc.run(words("whole")).code == 0);
  int saved = 0;
  const std::string split = GENERATE("train", "val");
  const std::vector<int> damaged = {3, 9, 13, 19};  // of those that are not read before a run begins
  for (const int i : damaged) {
    const std::string run = fmt::format("run{}", i), file = name_of(split, i);
    dgc.write(file, "no image");
    const Result broken = dgc.run(words(run));
    INFO(broken.err);
    CHECK(broken.code == 2);
    CHECK_THAT(broken.err, Contains(file));
    const size_t steps = dgc.rows(run).size();
    const bool tells =
        broken.err.find(fmt::format("; the state of step {} is saved: go on", steps)) < broken.err.size();
    CHECK(tells == !dgc.checkpoints(run).empty());
    saved += tells ? 1 : 0;
    CHECK_THAT(dgc.read(run + "/log.txt"), Contains(file));
    write_image(file, i);
    std::vector<std::string> again = words(run);
    again.emplace_back("--resume");
    CHECK(dgc.run(again).code == 0);
    CHECK(dgc.final_hash(run) == dgc.final_hash("whole"));
    CHECK(dgc.rows(run).size() == dgc.rows("whole").size());
  }
  // Two images are in the first step. Several ranks save where a loader has come far enough ahead.
  if (ranks != "ranks=2" || split == "val") CHECK(saved >= std::ssize(damaged) - 2);
}

TEST_CASE("a finished run is told and shown once more") {
  const Program dgc;
  const std::vector<std::string> words = {"train", "tiny.json", "--out", "run", "--resume"};
  const Result first = dgc.run(words);
  REQUIRE(first.code == 0);
  const std::string metrics = dgc.read("run/metrics.jsonl");
  const Result again = dgc.run(words);
  CHECK(again.code == 0);
  CHECK(again.out == first.out);
  CHECK_THAT(again.err, Contains("run is finished: all its 18 steps are done"));
  CHECK(dgc.read("run/metrics.jsonl") == metrics);
}

TEST_CASE("a folder with files of a run's names that is no run directory is left as it is") {
  const Program dgc;
  for (const std::string name : {"metrics.jsonl", "vocabulary.txt", "classes.json"}) {
    std::filesystem::create_directories(dgc.folder() / "mine");
    dgc.write("mine/" + name, "mine");
    for (const std::string also : {"--resume", "--overwrite"}) {
      const Result refused = dgc.run({"train", "tiny.json", "--out", "mine", also});
      CHECK(refused.code == 2);
      CHECK_THAT(refused.err, Contains("mine already holds " + name + ", but is not a run directory"));
    }
    CHECK(dgc.read("mine/" + name) == "mine");
    std::filesystem::remove_all(dgc.folder() / "mine");
  }
}

TEST_CASE("a config whose name begins with a dash is trained by a supervisor too") {
  const Program dgc;
  std::filesystem::copy(dgc.folder() / "tiny.json", dgc.folder() / "-x.json");
  CHECK(dgc.run({"train", "--max-restarts", "1", "--out", "dash", "--", "-x.json"}).code == 0);
}

TEST_CASE("a log beside somebody's config does not make a run of the folder") {
  const Program dgc;
  std::filesystem::create_directories(dgc.folder() / "mine");
  std::filesystem::copy(dgc.folder() / "tiny.json", dgc.folder() / "mine/config.json");
  dgc.write("mine/log.txt", "");  // as by "dgc train mine/config.json > mine/log.txt"
  CHECK(dgc.run({"train", "mine/config.json", "--set", "output=elsewhere"}).code == 0);
  const Result named = dgc.run({"train", "mine/config.json"});
  INFO(named.err);
  CHECK(named.code == 0);
  CHECK(dgc.read("mine/log.txt").empty());
}

TEST_CASE("checkpoints behind a link whose target is away are not taken for none") {
  const Program dgc;
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "run", "--set", "training.max_steps=2"}).code == 0);
  std::filesystem::rename(dgc.folder() / "run/checkpoints", dgc.folder() / "away");
  std::filesystem::create_directory_symlink("../disk", dgc.folder() / "run/checkpoints");
  const std::string metrics = dgc.read("run/metrics.jsonl");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "tiny.json", "--out", "run", "--resume"},
        std::vector<std::string>{"eval", "run"}}) {
    const Result refused = dgc.run(words);
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Contains("run/checkpoints is a link to ../disk, which is not there"));
  }
  CHECK(dgc.read("run/metrics.jsonl") == metrics);
  // Where the metrics are on the same disk, nothing else tells that there is a run.
  std::filesystem::rename(dgc.folder() / "run/metrics.jsonl", dgc.folder() / "rows");
  const Result fresh = dgc.run({"train", "tiny.json", "--out", "run"});
  CHECK(fresh.code == 2);
  CHECK_THAT(fresh.err, Contains("run already holds a run"));
  std::filesystem::rename(dgc.folder() / "rows", dgc.folder() / "run/metrics.jsonl");
  std::filesystem::rename(dgc.folder() / "away", dgc.folder() / "disk");
  CHECK(dgc.run({"train", "tiny.json", "--out", "run", "--resume"}).code == 0);
}

TEST_CASE("a fresh run whose checkpoints could not be saved is refused before it trains") {
  const Program dgc;
  std::filesystem::create_directory(dgc.folder() / "run");
  std::filesystem::create_directory_symlink("../disk", dgc.folder() / "run/checkpoints");
  const Result refused = dgc.run({"train", "tiny.json", "--out", "run", "--resume"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("run/checkpoints is a link to ../disk, which is not there"));
  CHECK_FALSE(std::filesystem::exists(dgc.folder() / "run/metrics.jsonl"));
}

TEST_CASE("a run's own config.json trains in that run's folder, wherever it was meant for") {
  const Program dgc;
  const std::string config = "runs/seed2/config.json";
  REQUIRE(dgc.run({"train", "tiny.json"}).code == 0);
  REQUIRE(dgc.run({"train", "tiny.json", "--set", "seed=2", "--out", "runs/seed2"}).code == 0);
  const std::string other = dgc.read("runs/tiny/metrics.jsonl");

  const Result refused = dgc.run({"train", config});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("runs/seed2 already holds a run: add --resume"));
  const std::vector<std::string> over = {"train", config, "--overwrite", "--set", "training.max_steps=3"};
  CHECK(dgc.run(over).code == 0);
  CHECK(dgc.rows("runs/seed2").back().integer("step") == 3);
  CHECK(dgc.run(over).code == 0);  // it has kept the config that it was started with

  const TempRun elsewhere;
  Child resumed(elsewhere.path(), {"train", (dgc.folder() / config).string(), "--resume"});
  CHECK(resumed.wait() == 0);
  CHECK_THAT(resumed.err(), Contains("runs/seed2 is finished: all its 3 steps are done"));
  CHECK_FALSE(std::filesystem::exists(elsewhere.path() / "runs"));
  CHECK(dgc.run({"train", config, "--max-restarts", "1", "--resume"}).code == 0);
  CHECK(dgc.read("runs/tiny/metrics.jsonl") == other);

  CHECK(dgc.run({"train", config, "--set", "output=runs/set"}).code == 0);
  CHECK(dgc.run({"train", config, "--out", "runs/out"}).code == 0);
  std::filesystem::copy(dgc.folder() / config, dgc.folder() / "copy.json");
  CHECK_THAT(dgc.run({"train", "copy.json"}).err, Contains("runs/tiny already holds a run"));
  for (const char* run : {"runs/set", "runs/out"}) CHECK(dgc.final_hash(run) == dgc.final_hash("runs/seed2"));
}

TEST_CASE("a resume that begins says whether there was a run") {
  const Program dgc;
  const std::vector<std::string> words = {"train", "tiny.json", "--resume", "--out", "runs/typo"};
  const Result none = dgc.run(words);
  CHECK(none.code == 0);
  CHECK_THAT(none.err, Contains("there is no run in runs/typo to go on with: starting from the beginning"));

  std::filesystem::remove_all(dgc.folder() / "runs/typo/checkpoints");
  const std::string rows = dgc.read("runs/typo/metrics.jsonl");
  dgc.write("runs/typo/metrics.jsonl", rows.substr(0, rows.find('\n') + 1));
  const Result unsaved = dgc.run(words);
  CHECK(unsaved.code == 0);
  CHECK_THAT(unsaved.err, Contains("the run in runs/typo has no checkpoint yet: starting from the beginning"));
  CHECK_FALSE(std::filesystem::exists(dgc.folder() / "runs/typo/metrics.jsonl.1"));
}

TEST_CASE("rows of a run whose checkpoints are gone are kept when it starts over") {
  const Program dgc;
  const std::vector<std::string> words = {"train", "tiny.json", "--resume", "--out", "run"};
  REQUIRE(dgc.run(words).code == 0);
  std::filesystem::remove_all(dgc.folder() / "run/checkpoints");
  const std::string rows = dgc.read("run/metrics.jsonl");
  const std::string unfinished = rows.substr(0, rows.find("{\"kind\":\"final\""));
  dgc.write("run/metrics.jsonl", unfinished);
  for (const char* aside : {"run/metrics.jsonl.1", "run/metrics.jsonl.2"}) {
    const Result over = dgc.run(words);
    INFO(over.err);
    CHECK(over.code == 0);
    CHECK_THAT(over.err, Contains(std::string("its rows are kept in ") + aside));
    CHECK(dgc.read(aside) == unfinished);
    std::filesystem::remove_all(dgc.folder() / "run/checkpoints");
    dgc.write("run/metrics.jsonl", unfinished);
  }
}

TEST_CASE("a run directory that is a link to what is not there is named") {
  const Program dgc;
  std::filesystem::create_directory_symlink("disk/run", dgc.folder() / "run");
  const Result refused = dgc.run({"train", "tiny.json", "--out", "run"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("run is a link to disk/run, which is not there"));
}

TEST_CASE("a run that has diverged ends with exit code 2, as does its resume") {
  const Program dgc;
  const std::vector<std::string> words = {
      "train",
      "tiny.json",
      "--out",
      "run",
      "--resume",
      "--set",
      R"(model={"type": "layers", "layers": [{"type": "flatten"}, {"type": "linear", "out": 64},
                {"type": "linear", "out": 64}, {"type": "linear", "out": 4}]})",
      "--set",
      R"(learning_rate={"type": "constant", "base": 1e6})"};
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Result result = dgc.run(words);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains("error: the run has diverged: "));
  }
  const Result evaluated = dgc.run({"eval", "run"});
  CHECK(evaluated.code == 0);
  CHECK_THAT(evaluated.out, Contains("test loss                  not finite\n"));
  CHECK_THAT(evaluated.err, Contains("warning: the test loss is not finite: the model has diverged\n"));
  CHECK_THAT(dgc.run({"eval", "run", "--json"}).err, Contains("warning: the test loss is not finite"));
}

TEST_CASE("only a start from the beginning takes --overwrite") {
  const Program dgc;
  for (const std::vector<std::string>& with :
       {std::vector<std::string>{"--resume"}, std::vector<std::string>{"--max-restarts", "3"}}) {
    std::vector<std::string> words = {"train", "tiny.json", "--out", "run", "--overwrite"};
    words.insert(words.end(), with.begin(), with.end());
    const Result result = dgc.run(words);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains(with[0] + " excludes --overwrite"));
    CHECK_FALSE(std::filesystem::exists(dgc.folder() / "run"));
  }
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "run"}).code == 0);
  const Result over = dgc.run({"train", "tiny.json", "--out", "run", "--overwrite", "--set", "seed=2"});
  CHECK(over.code == 0);
  CHECK_THAT(dgc.read("run/config.json"), Contains("\"seed\": 2"));
}

#ifndef DGC_SANITIZED  // the address sanitizer itself takes more memory than the limit
TEST_CASE("a system that refuses threads is told before the run that is to be replaced is removed") {
  const Program dgc;
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "run"}).code == 0);
  const auto before = dgc.checkpoints("run");
  // Each thread gets a stack of 1 GiB, of which there is no room for 64.
  const std::string limits = "ulimit -s 1048576 && ulimit -v 25165824 && exec \"$0\" \"$@\"";
  Child child(dgc.folder(),
              {"-c", limits, DGC_BINARY, "train", "tiny.json", "--out", "run", "--overwrite", "--set", "threads=64"},
              "sh");
  CHECK(child.wait() == 2);
  CHECK_THAT(child.err(), Contains("the system lets this process start no more threads"));
  CHECK(dgc.checkpoints("run") == before);
}
#endif

TEST_CASE("a run that nobody can look into is not taken for none") {
  const Program dgc;
  std::filesystem::create_symlink("loop", dgc.folder() / "loop");
  const Result result = dgc.run({"eval", "loop"});
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("loop/config.json: Too many levels of symbolic links"));
}

TEST_CASE("a run whose data lies beside the place of its start is evaluated from anywhere") {
  const Program dgc;
  const TinyText text;
  const std::string config =
      resolved_json(text.config({"data.vocabulary=words.txt", "data.train=data/train.txt",
                                 "data.valid=data/../data/valid.txt", "data.test=data/test.txt"}));
  std::filesystem::create_directories(dgc.folder() / "data");
  std::filesystem::create_directories(dgc.folder() / "configs");
  for (const char* name : {"train.txt", "valid.txt", "test.txt"}) {
    std::filesystem::copy(text.path(name), dgc.folder() / "data" / name);
  }
  std::string words = "<eos>\n<unk>\n";
  for (int i = 0; i < 10; ++i) words += fmt::format("w{}\n", i);
  dgc.write("words.txt", words);
  dgc.write("configs/text.json", config);
  const Result trained = dgc.run({"train", "configs/text.json", "--out", "run"});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const std::string saved = dgc.read("run/config.json");
  for (const char* path : {"words.txt", "data/train.txt", "data/valid.txt", "data/test.txt"}) {
    CHECK_THAT(saved, Contains("\"" + (dgc.folder() / path).string() + "\""));
  }
  CHECK(dgc.run({"config", "configs/text.json"}).out == config);  // as it was written

  const TempRun elsewhere;
  Child eval(elsewhere.path(), {"eval", (dgc.folder() / "run").string()});
  const int code = eval.wait();
  INFO(eval.err());
  CHECK(code == 0);
  CHECK_THAT(eval.out(), Contains(dgc.final_hash("run")));
}

}  // namespace dgc
