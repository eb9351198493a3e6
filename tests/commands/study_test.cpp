#include <fmt/core.h>
#include <sys/stat.h>

#include <catch.hpp>
#include <regex>

#include "paths.h"
#include "run/run_directory.h"
#include "tensor/cores.h"
#include "tests/commands/program.h"

// dgc study: trainings are children of the program that the test starts.
namespace dgc {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Catch::Contains;

// The program, and a study of two runs of it with so many seeds.
class Studied : public Program {
 public:
  explicit Studied(const std::string& more = "", const std::string& seeds = "[1, 2]") {
    write("study.json", R"({"name": "Sparse or dense", "config": "tiny.json", "seeds": )" + seeds + R"(,
      "set": {"training.eval_every_epochs": 0, "checkpoint.every_steps": 5}, "reference": "dense", "runs": {
        "dense": {"set": {"optimizer": {"type": "sgd", "momentum": 0.9}}, "published": 0.5, "source": "somebody"},
        "dgc": {"config": "tiny.json"})" +
                            more + "}}");
  }
  Result study(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"study", "study.json", "--out", "out"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

// A training that takes long enough to be disturbed.
void make_long(const Program& dgc, int epochs = kLongEpochs) {
  std::string text = dgc.read("tiny.json");
  dgc.write("tiny.json", text.replace(text.find("\"epochs\": 3"), 11, fmt::format("\"epochs\": {}", epochs)));
}

// Makes a finished run one that has no final row, and a checkpoint that is damaged.
void lose_the_end(const Program& dgc, const std::string& run) {
  const std::string rows = dgc.read(run + "/metrics.jsonl");
  dgc.write(run + "/metrics.jsonl", rows.substr(0, rows.rfind('\n', rows.size() - 2) + 1));  // without the final row
  dgc.write(run + "/checkpoints/" + dgc.checkpoints(run).front() + "/manifest.json", "{");
}

// The process that trains into a run directory.
pid_t trainer_of(const Program& dgc, const std::string& run) { return std::stoi(dgc.read(run + "/.lock")); }

// "7 s", "12 min" or "3 h 20 min", behind what stands before it.
double seconds_behind(const std::string& text, const std::string& before) {
  std::smatch found;
  const std::regex duration(before + R"((?:(\d+) h )?(\d+) (min|s)\b)");
  REQUIRE(std::regex_search(text, found, duration));
  const double hours = found[1].matched ? std::stod(found[1]) : 0;
  return 3600 * hours + (found[3] == "min" ? 60 : 1) * std::stod(found[2]);
}

// Replaces the accuracy in a run's last row.
void set_accuracy(const Program& dgc, const std::string& run, double accuracy) {
  const std::string file = run + "/metrics.jsonl", key = "\"test_accuracy\":";
  std::string text = dgc.read(file);
  const size_t at = text.rfind(key) + key.size();
  dgc.write(file, text.replace(at, text.find_first_of(",}", at) - at, std::to_string(accuracy)));
}

}  // namespace

TEST_CASE("a study says by how much a run differs from the reference, seed by seed") {
  const Studied dgc(R"(, "other": {"config": "tiny.json", "seeds": [2, 1, 3]})");
  REQUIRE(dgc.study().code == 0);
  set_accuracy(dgc, "out/dense/seed1", 0.50);
  set_accuracy(dgc, "out/dense/seed2", 0.60);
  set_accuracy(dgc, "out/dgc/seed1", 0.51);
  set_accuracy(dgc, "out/dgc/seed2", 0.61);
  set_accuracy(dgc, "out/other/seed1", 0.47);
  set_accuracy(dgc, "out/other/seed2", 0.53);
  const Result result = dgc.study();
  INFO(result.out);
  CHECK_THAT(result.out, Contains("+1.00 ± 0.00 points"));
  CHECK_THAT(result.out, Contains("-5.00 ± 25.41 points (2 pairs)"));  // -3 and -7: 12.706 x 2.828 / sqrt(2)
}

TEST_CASE("a study trains each run with each seed, once, and compares them") {
  const Studied dgc;
  const Result first = dgc.study({"--jobs", "2"});
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.out, Contains("against dense") && Contains("50.00 % (somebody)") && Contains("out/report.html"));
  CHECK_THAT(first.err, Contains("dgc seed 2: done"));
  CHECK_THAT(dgc.read("out/report.html"), Contains("<h1>Sparse or dense</h1>") && Contains("class=\"band r1"));
  const std::string hash = dgc.final_hash("out/dgc/seed2");

  const Result alone = dgc.run({"train", "tiny.json", "--set", "seed=2", "--out", "alone"});
  REQUIRE(alone.code == 0);
  CHECK(dgc.final_hash("alone") == hash);

  const auto written = fs::last_write_time(dgc.folder() / "out/dgc/seed2/metrics.jsonl");
  const Result again = dgc.study();
  CHECK(again.code == 0);
  CHECK(again.out == first.out);
  CHECK(fs::last_write_time(dgc.folder() / "out/dgc/seed2/metrics.jsonl") == written);
}

TEST_CASE("a study trains where the environment has a meeting point, which is for ranks of other runs") {
  const Studied dgc("", "[1]");
  setenv("DGC_RENDEZVOUS", "tcp://127.0.0.1:29400", 1);
  const Result planned = dgc.study({"--dry-run"}), result = dgc.study();
  unsetenv("DGC_RENDEZVOUS");
  CHECK(planned.code == 0);
  INFO(result.err);
  CHECK(result.code == 0);
}

TEST_CASE("a study that asks for more epochs trains on, and one that asks for fewer is refused") {
  const Studied dgc("", "[1]");
  const std::string study = dgc.read("study.json");
  const auto with_epochs = [&](int epochs, const std::vector<std::string>& more = {}) {
    const std::string before = R"("checkpoint.every_steps": 5)";
    std::string text = study;
    text.replace(text.find(before), before.size(),
                 fmt::format(R"({}, "training.epochs": {}, "learning_rate": {{"type": "constant", "base": 0.05}})",
                             before, epochs));
    dgc.write("study.json", text);
    return dgc.study(more);
  };
  REQUIRE(with_epochs(3).code == 0);
  const Result more = with_epochs(4);
  INFO(more.err);
  CHECK(more.code == 0);
  CHECK(dgc.rows("out/dgc/seed1").back().number("epoch") == 4);
  const Result one = with_epochs(5, {"--only", "dgc"});
  CHECK(one.code == 0);
  CHECK_THAT(one.out, Contains("0 of 1") && !Contains("points"));  // dense has four epochs
  const Result fewer = with_epochs(2);
  CHECK(fewer.code == 2);
  CHECK_THAT(fewer.err, Contains("was trained for 5 epochs, and the study says 2"));
}

TEST_CASE("a study that is stopped goes on, and ends in the same bits") {
  const Studied dgc;
  const std::vector<std::string> longer = {"study", "study.json", "--out", "out", "--jobs", "2"};
  dgc.write("tiny.json", [&] {
    std::string text = dgc.read("tiny.json");
    return text.replace(text.find("\"epochs\": 3"), 11, fmt::format("\"epochs\": {}", kLongEpochs));
  }());
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "whole", "--set", "training.eval_every_epochs=0"}).code == 0);
  {
    Child study(dgc.folder(), longer);
    REQUIRE(wait_until([&] { return dgc.rows("out/dense/seed1").size() > 5; }));
    study.send(SIGINT);
    CHECK(study.wait() == 130);
    CHECK_THAT(study.err(), Contains("stopping: 2 trainings save their state"));
  }
  const Result rest = dgc.run(longer);
  INFO(rest.err);
  REQUIRE(rest.code == 0);
  CHECK_THAT(rest.err, Contains("dense seed 1: goes on"));
  CHECK(dgc.final_hash("out/dgc/seed1") == dgc.final_hash("whole"));
}

TEST_CASE("a study goes on with a training that has lost its metrics, and says so where a result is gone") {
  const Studied dgc("", "[1]");
  REQUIRE(dgc.study().code == 0);
  fs::remove(dgc.folder() / "out/dgc/seed1/metrics.jsonl");
  const Result again = dgc.study();
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Contains("dgc seed 1: goes on") && !Contains("already holds a run"));
  CHECK(dgc.rows("out/dgc/seed1").size() == 1);  // the final row, which counts
  CHECK_THAT(again.out, Contains(" points") && !Contains("0 of 1"));
  const Result shown = dgc.run({"report", "out/dgc/seed1"});
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, Contains("test accuracy") && Contains("3 of 3"));
  fs::remove(dgc.folder() / "out/dgc/seed1/metrics.jsonl");
  fs::remove(dgc.folder() / "out/dgc/seed1/config.json");
  const Result broken = dgc.study(), planned = dgc.study({"--dry-run"});
  CHECK(broken.code == 2);
  CHECK_THAT(broken.out,
             Contains("against dense") && Contains("dgc seed 1 failed: out/dgc/seed1 is not a run directory"));
  CHECK_THAT(planned.out, Contains("dgc seed 1 will fail: out/dgc/seed1 is not a run directory"));
  fs::remove_all(dgc.folder() / "out/dense/seed1");
  fs::remove(dgc.folder() / "out/dense/seed1.txt");
  fs::create_directory(dgc.folder() / "out/dense/seed1.txt");
  const Result blocked = dgc.study({"--only", "dense"});
  CHECK(blocked.code == 2);
  CHECK_THAT(blocked.out, Contains("dense seed 1 failed: cannot write out/dense/seed1.txt: Is a directory"));
}

TEST_CASE("a training that has lost its metrics counts no longer where the study asks for more epochs") {
  const Studied dgc("", "[1]");
  const auto with_epochs = [&](const std::string& epochs) {
    std::string text = dgc.read("tiny.json");
    const size_t at = text.find("\"epochs\": ") + 10;
    dgc.write("tiny.json", text.replace(at, 1, epochs));
  };
  std::string text = dgc.read("tiny.json");
  dgc.write("tiny.json", text.replace(text.find("cosine"), 6, "constant"));
  REQUIRE(dgc.study().code == 0);
  fs::remove(dgc.folder() / "out/dgc/seed1/metrics.jsonl");
  REQUIRE(dgc.study().code == 0);
  with_epochs("4");
  const Result other = dgc.study({"--only", "dense"});
  INFO(other.err);
  CHECK(other.code == 0);
  CHECK_THAT(other.out, Contains("0 of 1") && !Contains("points"));
  CHECK_THAT(dgc.read("out/report.html"), !Contains("unfinished"));  // there is no curve of it
  CHECK(dgc.study().code == 0);
  CHECK(dgc.rows("out/dgc/seed1").back().number("epoch") == 4);
}

TEST_CASE("a study goes on from an older checkpoint where the newest is damaged") {
  const Studied dgc("", "[1]");
  REQUIRE(dgc.study().code == 0);
  const std::string run = "out/dgc/seed1", hash = dgc.final_hash(run);
  lose_the_end(dgc, run);
  const Result again = dgc.study();
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Contains("dgc seed 1: goes on"));
  CHECK(dgc.final_hash(run) == hash);
}

TEST_CASE("a dry run names a run whose data is missing, and plans the others alone that are asked for") {
  const Studied dgc(R"(, "bad": {"set": {"data": {"type": "cifar10", "path": "nowhere"},
      "model": {"type": "resnet", "depth": 8, "classes": 10}}})",
                    "[1]");
  const Result all = dgc.study({"--dry-run"});
  CHECK(all.code == 2);
  CHECK_THAT(all.out, Contains("bad will fail: nowhere") && Contains("dgc: 3 epochs, 1 of 1 seed to train") &&
                          Contains("in all"));
  const Result no_weights =
      Studied(R"(, "tuned": {"set": {"model.init_from": "none.safetensors"}})", "[1]").study({"--dry-run"});
  CHECK(no_weights.code == 2);
  CHECK_THAT(no_weights.out, Contains("tuned will fail: model.init_from: cannot read ") && Contains("in all"));
  const Result one = dgc.study({"--dry-run", "--only", "dgc"});
  CHECK(one.code == 0);
  CHECK_THAT(one.out, !Contains("dense:") && !Contains("bad"));
}

TEST_CASE("a study is told from a config") {
  const Studied dgc("", "[1]");
  const Result config = dgc.run({"study", "tiny.json"}), study = dgc.run({"train", "study.json", "--out", "x"});
  CHECK(config.code == 2);
  CHECK_THAT(config.err, Contains("tiny.json: this is a config: dgc train trains it"));
  CHECK(study.code == 2);
  CHECK_THAT(study.err, Contains("study.json: this is a study: dgc study trains it"));
}

TEST_CASE("a dry run names a training that has ended and cannot go on to more epochs") {
  const Studied dgc("", "[1]");
  std::string text = dgc.read("study.json");
  const std::string steps = R"("checkpoint.every_steps": 5)";
  const std::string constant = steps + R"(, "learning_rate": {"type": "constant", "base": 0.05})";
  dgc.write("study.json", text.replace(text.find(steps), steps.size(), constant));
  REQUIRE(dgc.study().code == 0);
  fs::remove_all(dgc.folder() / "out/dgc/seed1/checkpoints");
  CHECK(dgc.study({"--dry-run"}).code == 0);
  dgc.write("study.json", text.replace(text.find(steps), steps.size(), steps + R"(, "training.epochs": 4)"));
  for (const std::vector<std::string>& how : {std::vector<std::string>{"--dry-run"}, {}}) {
    const Result result = dgc.study(how);
    CHECK(result.code == 2);
    CHECK_THAT(result.out + result.err,
               Contains("dgc seed 1") && Contains("has a result and no checkpoint to go on from; remove it"));
  }
}

TEST_CASE("a training of a study that fails is named, and the others go on") {
  const Studied dgc(R"(, "hot": {"set": {
      "learning_rate": {"type": "constant", "base": 1e6}, "optimizer.max_skipped_steps": 3, "training.epochs": 20,
      "model": {"type": "layers", "layers": [{"type": "flatten"}, {"type": "linear", "out": 64},
                                             {"type": "linear", "out": 64}, {"type": "linear", "out": 4}]}}})",
                    "[1]");
  const Result result = dgc.study();
  INFO(result.err);
  CHECK(result.code == 2);
  CHECK_THAT(result.out, Contains("hot seed 1 failed: optimizer.max_skipped_steps") && Contains("0 of 1"));
  CHECK(dgc.final_hash("out/dgc/seed1").size() == 16);

  // The study says something else now than what the folder was trained with.
  const Result other = [&] {
    std::string text = dgc.read("study.json");
    dgc.write("study.json", text.replace(text.find("0.9}"), 4, "0.8}"));
    return dgc.study({"--only", "dense"});
  }();
  CHECK(other.code == 2);
  CHECK_THAT(other.out, Contains("was trained with optimizer.momentum 0.9, and the study says 0.8"));
}

TEST_CASE("a training of a study that has diverged has failed, also when the study is asked again") {
  const Studied dgc(R"(, "hot": {"set": {
      "learning_rate": {"type": "constant", "base": 1e6},
      "model": {"type": "layers", "layers": [{"type": "flatten"}, {"type": "linear", "out": 64},
                                             {"type": "linear", "out": 64}, {"type": "linear", "out": 4}]}}})",
                    "[1]");
  for (int times = 0; times < 2; ++times) {
    const Result result = dgc.study({"--only", "hot"});
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK_THAT(result.out, Contains("hot seed 1 failed: the run has diverged") && Contains("0 of 1"));
  }
  const Result planned = dgc.study({"--only", "hot", "--dry-run"});
  CHECK(planned.code == 2);
  CHECK_THAT(planned.out, Contains("hot seed 1 will fail: the run has diverged; out/hot/seed1.txt has more on it"));
  CHECK(dgc.rows("out/hot/seed1").back().text("kind") == "final");
  CHECK(dgc.rows("out/hot/seed1").back().boolean("diverged") == true);
  std::filesystem::remove_all(dgc.folder() / "out/hot/seed1/checkpoints");
  const Result without = dgc.study({"--only", "hot"});
  CHECK(without.code == 2);
  CHECK_THAT(without.out, Contains("hot seed 1 failed: the run has diverged") && Contains("0 of 1"));
}

TEST_CASE("what a study's folder holds of another experiment is no result of the study") {
  const Studied dgc("", "[1, 2]");
  REQUIRE(dgc.study().code == 0);
  const std::string study = dgc.read("study.json");
  const auto with = [&](const std::string& setting) {
    const std::string before = R"("checkpoint.every_steps": 5)";
    std::string text = study;
    dgc.write("study.json", text.replace(text.find(before), before.size(), before + ", " + setting));
    const Result planned = dgc.study({"--dry-run"}), result = dgc.study();
    CHECK(planned.code == 2);
    CHECK(result.code == 2);
    CHECK_THAT(result.out, Contains("0 of 2") && !Contains("% ±"));
    CHECK_THAT(planned.out, Contains("dgc seed 2 will fail: out/dgc/seed2"));
    return result.out;
  };
  CHECK_THAT(with(R"("training.epochs": 4)"), Contains("was started with training.epochs = 3 and cannot be resumed"));
  CHECK_THAT(with(R"("workers_per_rank": 2)"), Contains("dgc seed 2 failed: out/dgc/seed2 was trained with another "
                                                        "number of workers, 4, "
                                                        "and the study says 2; remove it, or give another --out"));
  CHECK_THAT(with(R"("exchange.wire.indices": "rice")"), Contains("was trained with exchange.wire.indices"));  // bytes
  CHECK_THAT(with(R"("training.max_steps": 10)"), Contains("was trained for 18 steps, and the study says 10"));
  const Result one = dgc.study({"--only", "dgc seed 2"});
  CHECK_THAT(one.out, Contains("dense seed 1 does not count: out/dense/seed1 was trained for 18 steps"));
  dgc.write("study.json", study);
  CHECK(dgc.study().code == 0);
}

TEST_CASE("a study whose runs start from a file by a relative path knows them again") {
  const Studied dgc(R"(, "tuned": {"set": {"model.init_from": "first.safetensors"}})", "[1]");
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "first"}).code == 0);
  fs::copy_file(dgc.folder() / "first/checkpoints" / dgc.checkpoints("first").front() / "weights.safetensors",
                dgc.folder() / "first.safetensors");
  for (int times = 0; times < 2; ++times) {
    const Result result = dgc.study({"--only", "tuned"});
    INFO(result.err);
    CHECK(result.code == 0);
  }
}

TEST_CASE("a study that asks for more epochs, or for initial weights, counts no older result") {
  const Studied dgc("", "[1]");
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string text = dgc.read("study.json");
    dgc.write("study.json", text.replace(text.find(before), before.size(), after));
    return dgc.study();
  };
  const std::string steps = R"("checkpoint.every_steps": 5)";
  CHECK(with(R"("training.eval_every_epochs": 0)", R"("data.validation_split": 0.2, "training.stop_after": 9,
             "learning_rate": {"type": "constant", "base": 0.05})")
            .code == 0);
  const auto last_step = [&] { return *dgc.rows("out/dgc/seed1").back().integer("step"); };
  const int64_t all = last_step();  // of three epochs
  const Result longer = with(steps, steps + R"(, "training.epochs": 4)");
  INFO(longer.err);
  CHECK(longer.code == 0);
  CHECK(last_step() == all / 3 * 4);
  dgc.run({"train", "tiny.json", "--out", "first"});
  fs::copy_file(dgc.folder() / "first/checkpoints" / dgc.checkpoints("first").front() / "weights.safetensors",
                dgc.folder() / "first.safetensors");
  const Result tuned = with(steps, steps + R"(, "model.init_from": "first.safetensors")");
  CHECK(tuned.code == 2);
  CHECK_THAT(tuned.out, Contains("dgc seed 1 failed: out/dgc/seed1 was trained with model.init_from \"\""));
}

TEST_CASE("a study trains what it has checked, also where its config changes or goes while it trains") {
  const Studied dgc("", "[1, 2]");
  const std::string config = dgc.read("tiny.json");
  const bool goes = GENERATE(false, true);
  Child study(dgc.folder(), {"study", "study.json", "--out", "out"});
  REQUIRE(wait_until([&] { return !dgc.rows("out/dense/seed1").empty(); }));
  if (goes) {
    fs::remove(dgc.folder() / "tiny.json");
  } else {
    std::string other = config;
    dgc.write("new.json", other.replace(other.find("0.05"), 4, "0.01"));
    fs::rename(dgc.folder() / "new.json", dgc.folder() / "tiny.json");
  }
  const int code = study.wait();
  INFO(study.err());
  CHECK(code == 0);
  CHECK_THAT(study.out(), Contains("against dense") && !Contains("failed"));
  dgc.write("tiny.json", config);
  REQUIRE(dgc.run({"train", "tiny.json", "--set", "seed=2", "--out", "alone"}).code == 0);
  CHECK(dgc.final_hash("out/dgc/seed2") == dgc.final_hash("alone"));
}

TEST_CASE("a training of a study is that of its config with the study's settings, and ends so if it goes on") {
  const Program dgc;
  write_language_model(dgc);
  dgc.write("study.json", R"({"config": "lm.json", "seeds": [2], "runs": {
    "lm": {"set": {"training.epochs": 2, "training.eval_every_epochs": 0, "checkpoint.every_steps": 3}}}})");
  const std::vector<std::string> study = {"study", "study.json", "--out", "out"};
  const std::string run = "out/lm/seed2";
  REQUIRE(dgc.run(study).code == 0);
  REQUIRE(dgc.run({"train", "lm.json", "--out", "alone", "--set", "seed=2", "--set", "name=lm", "--set",
                   "training.epochs=2", "--set", "training.eval_every_epochs=0", "--set", "checkpoint.every_steps=3"})
              .code == 0);
  CHECK(dgc.read(run + "/config.json") == dgc.read("alone/config.json"));
  CHECK(dgc.final_hash(run) == dgc.final_hash("alone"));
  // Paths stay relative to where dgc is started, and the vocabulary's size stays the data's.
  CHECK_THAT(dgc.read(run + ".json"), Contains("\"train\": \"train.txt\"") && Contains("\"vocabulary\": 0"));

  // An older dgc wrote no such file.
  lose_the_end(dgc, run);
  fs::remove(dgc.folder() / (run + ".json"));
  const Result again = dgc.run(study);
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Contains("lm seed 2: goes on"));
  CHECK(dgc.final_hash(run) == dgc.final_hash("alone"));
  CHECK(dgc.read(run + "/config.json") == dgc.read("alone/config.json"));
  CHECK(fs::exists(dgc.folder() / (run + ".json")));
}

TEST_CASE("a training that is killed, or whose result is damaged, has failed, and the first failure is the exit code") {
  const Studied dgc("", "[1]");
  make_long(dgc);
  Child study(dgc.folder(), {"study", "study.json", "--out", "out"});
  REQUIRE(wait_until([&] { return dgc.rows("out/dense/seed1").size() > 1; }));
  REQUIRE(kill(trainer_of(dgc, "out/dense/seed1"), SIGKILL) == 0);
  REQUIRE(wait_until([&] { return dgc.rows("out/dgc/seed1").size() > 1; }));
  dgc.write("out/dgc/seed1/config.json", "{");  // which the training does not read again
  CHECK(study.wait() == 128 + SIGKILL);
  CHECK_THAT(study.out(), Contains("dense seed 1 failed: it was ended by signal 9 (Killed)") &&
                              Contains("dgc seed 1 failed: out/dgc/seed1/config.json") && Contains("0 of 1"));
}

TEST_CASE("a training that somebody stops alone stops the study") {
  const Studied dgc("", "[1]");
  make_long(dgc, kEndlessEpochs);
  Child study(dgc.folder(), {"study", "study.json", "--out", "out"});
  REQUIRE(wait_until([&] { return dgc.rows("out/dense/seed1").size() > 1; }));
  REQUIRE(kill(trainer_of(dgc, "out/dense/seed1"), SIGTERM) == 0);
  CHECK(study.wait() == 130);
  CHECK_THAT(study.err(), Contains("somebody has stopped dense seed 1 alone, and so the study starts no more"));
  CHECK_FALSE(fs::exists(dgc.folder() / "out/dgc"));
}

TEST_CASE("those beside a training that somebody stops alone go on until they are stopped") {
  const Studied dgc("", "[1]");
  make_long(dgc, kEndlessEpochs);
  Child study(dgc.folder(), {"study", "study.json", "--out", "out", "--jobs", "2"});
  REQUIRE(wait_until([&] { return dgc.rows("out/dense/seed1").size() > 1 && dgc.rows("out/dgc/seed1").size() > 1; }));
  REQUIRE(kill(trainer_of(dgc, "out/dense/seed1"), SIGTERM) == 0);
  REQUIRE(wait_until([&] {
    return Contains("alone, and so the study starts no more; Ctrl-C stops the 1 beside it too").match(study.err());
  }));
  const auto rows = dgc.rows("out/dgc/seed1").size();
  REQUIRE(wait_until([&] { return dgc.rows("out/dgc/seed1").size() > rows + 1; }));
  study.send(SIGTERM);
  CHECK(study.wait() == 130);
  CHECK_THAT(study.err(), Contains("stopping: 1 training saves"));
  CHECK_THAT(dgc.read("out/dgc/seed1/log.txt"), Contains("the state is saved"));
}

TEST_CASE("trainings at once share the cores out, but for those whose config has a number of threads") {
  const Studied dgc(R"(, "three": {"config": "tiny.json", "set": {"threads": 3}})", "[1]");
  std::string text = dgc.read("tiny.json");
  dgc.write("tiny.json", text.replace(text.find("\"threads\": 1"), 12, "\"threads\": 0"));
  // One after the other, in studies of which each lacks one training.
  for (const char* run : {"three", "dgc"}) REQUIRE(dgc.study({"--jobs", "2", "--only", run}).code == 0);
  const auto threads = [&](const std::string& run) { return run_config(dgc.folder() / "out" / run).threads; };
  const int64_t share = std::max(1, usable_cores() / 2);
  CHECK(threads("dgc/seed1") == share);
  CHECK(threads("three/seed1") == 3);
  // What goes on does so with as many threads as before.
  const std::string run = "out/dgc/seed1";
  lose_the_end(dgc, run);
  const Result again = dgc.study();
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Contains("dgc seed 1: goes on"));
  CHECK(threads("dgc/seed1") == share);
}

TEST_CASE("a study goes into a folder of its file's name, and shows its table though the report cannot be written") {
  const Studied dgc("", "[1]");
  const Result quiet = dgc.run({"study", "study.json", "--quiet"});
  CHECK(quiet.code == 0);
  CHECK(quiet.err.empty());
  CHECK_THAT(quiet.out, Contains("against dense") && Contains("report: runs/study/report.html"));
  CHECK(dgc.final_hash("runs/study/dgc/seed1").size() == 16);
  fs::remove(dgc.folder() / "runs/study/report.html");
  fs::create_directory(dgc.folder() / "runs/study/report.html");
  const Result blocked = dgc.run({"study", "study.json"});
  CHECK(blocked.code == 2);
  CHECK_THAT(blocked.out, Contains("against dense") && !Contains("report:"));
  CHECK_THAT(blocked.err, Contains("runs/study/report.html"));
}

TEST_CASE("two studies do not train into one folder") {
  const Studied dgc;
  make_long(dgc);
  Child study(dgc.folder(), {"study", "study.json", "--out", "out"});
  REQUIRE(wait_until([&] { return dgc.rows("out/dense/seed1").size() > 1; }));
  const Result second = dgc.study({"--only", "dgc"});
  CHECK(second.code == 2);
  CHECK_THAT(second.err, Contains("out is being trained by process"));
  CHECK_FALSE(fs::exists(dgc.folder() / "out/dgc"));
  study.send(SIGINT);
  CHECK(study.wait() == 130);
}

TEST_CASE("a study goes on with its own program where that was replaced meanwhile") {
  const Studied dgc("", "[1, 2]");
  const fs::path program = dgc.folder() / "dgc";
  fs::copy_file(DGC_BINARY, program);
  Child study(dgc.folder(), {"study", "study.json", "--out", "out"}, program.string());
  REQUIRE(wait_until([&] { return !dgc.rows("out/dense/seed1").empty(); }));
  dgc.write("new", "no program");
  fs::rename(dgc.folder() / "new", program);
  const int code = study.wait();
  INFO(study.err());
  CHECK(code == 0);
  CHECK(dgc.final_hash("out/dgc/seed2").size() == 16);
}

TEST_CASE("a damaged training of a study is named, and the others count") {
  const Studied dgc("", "[1, 2]");
  REQUIRE(dgc.study({"--only", "dense|seed 1"}).code == 0);
  const bool in_config = GENERATE(true, false);
  if (in_config) {
    dgc.write("out/dense/seed1/config.json", "{");
  } else {
    std::string rows = dgc.read("out/dense/seed1/metrics.jsonl");
    dgc.write("out/dense/seed1/metrics.jsonl", rows.insert(rows.find('\n') + 1, "nonsense\n"));
  }
  const Result result = dgc.study();
  INFO(result.err);
  CHECK(result.code == 2);
  const std::string file = in_config ? "config.json" : "metrics.jsonl: line 2";
  CHECK_THAT(result.out, Contains("dense seed 1 failed: out/dense/seed1/" + file) && Contains("(1 pair)"));
  CHECK(dgc.final_hash("out/dgc/seed2").size() == 16);
  CHECK_THAT(dgc.study({"--only", "dnse"}).err, Contains("--only dnse: no training of the study has such a name"));
}

TEST_CASE("a dry run of a study trains nothing and says how long it will take") {
  const Studied dgc;
  const Result result = dgc.study({"--dry-run", "--only", "seed 2"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, Contains("dense: 3 epochs, 1 of 2 seeds to train, 18 steps of") && Contains("in all"));
  CHECK_FALSE(fs::exists(dgc.folder() / "out"));
}

TEST_CASE("a dry run tells the time of each run's steps, and of all runs together") {
  const Studied dgc(R"(, "twice": {"config": "tiny.json", "seeds": [1, 2]})", "[1]");
  std::string text = dgc.read("tiny.json");
  dgc.write("tiny.json", text.replace(text.find("\"epochs\": 3"), 11, "\"epochs\": 1000000"));
  const Result planned = dgc.study({"--dry-run"});
  INFO(planned.out);
  REQUIRE(planned.code == 0);
  double all = 0;
  for (const auto& [run, seeds] : {std::pair("dense", 1), std::pair("dgc", 1), std::pair("twice", 2)}) {
    std::smatch found;
    const std::regex step(fmt::format("{}: .*000,000 steps of ([0-9.]+) ms", run));
    REQUIRE(std::regex_search(planned.out, found, step));
    const double seconds = seconds_behind(planned.out, fmt::format("{}: .* ms: ", run));
    CHECK(seconds == Approx(6e6 * seeds * std::stod(found[1]) / 1000).epsilon(0.5));
    all += seconds;
  }
  CHECK(seconds_behind(planned.out, "in all, .*: ") == Approx(all).margin(240));
}

TEST_CASE("a dry run does not look for the first weights of what goes on from its own") {
  const Studied dgc(R"(, "tuned": {"set": {"model.init_from": "first.safetensors"}})", "[1]");
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "first"}).code == 0);
  fs::copy_file(dgc.folder() / "first/checkpoints" / dgc.checkpoints("first").front() / "weights.safetensors",
                dgc.folder() / "first.safetensors");
  REQUIRE(dgc.study({"--only", "tuned"}).code == 0);
  fs::remove(dgc.folder() / "first.safetensors");
  const std::string run = "out/tuned/seed1";
  lose_the_end(dgc, run);
  const Result planned = dgc.study({"--dry-run", "--only", "tuned"});
  INFO(planned.out);
  CHECK(planned.code == 0);
  CHECK_THAT(planned.out, Contains("tuned: 3 epochs, 1 of 1 seed to train") && !Contains("will fail"));
}

TEST_CASE("a study waits for nobody at the other end of a pipe") {
  const Studied dgc("", "[1]");
  const std::string file = GENERATE("out/dgc/seed1.txt", "out/dgc/seed1.json");
  fs::create_directories(dgc.folder() / "out/dgc");
  REQUIRE(mkfifo((dgc.folder() / file).c_str(), 0600) == 0);
  const Result result = dgc.study({"--only", "dgc"});
  CHECK(result.code == 2);
  CHECK_THAT(result.out, Contains("dgc seed 1 failed: " + file + " is a pipe, and a study keeps a file there"));
}

TEST_CASE("a study writes through no link") {
  const Studied dgc("", "[1]");
  REQUIRE(dgc.study().code == 0);
  dgc.write("precious", "text");
  const std::string file = GENERATE("out/report.html", "out/dgc/seed1.txt", "out/dgc/seed1.json");
  fs::remove_all(dgc.folder() / "out/dgc/seed1");
  fs::remove(dgc.folder() / file);
  fs::create_symlink(dgc.folder() / "precious", dgc.folder() / file);
  const Result result = dgc.study();
  CHECK(result.code == 2);
  CHECK_THAT(result.out + result.err, Contains(file + " is a link, and a study keeps a file there"));
  CHECK(dgc.read("precious") == "text");
}

TEST_CASE("a study whose trainings are all done writes its report through no link and into no pipe either") {
  const Studied dgc("", "[1]");
  REQUIRE(dgc.study().code == 0);
  dgc.write("precious", "text");
  const fs::path report = dgc.folder() / "out/report.html";
  fs::remove(report);
  fs::create_symlink(dgc.folder() / "precious", report);
  CHECK(dgc.study().err == "error: out/report.html is a link, and a study keeps a file there\n");
  CHECK(dgc.read("precious") == "text");
  fs::remove(report);
  REQUIRE(mkfifo(report.c_str(), 0600) == 0);
  CHECK(dgc.study().err == "error: out/report.html is a pipe, and a study keeps a file there\n");
}

TEST_CASE("a dry run says what may end a training before its epochs") {
  const Studied dgc(R"(, "short": {"set": {"training.max_steps": 7}},
      "stops": {"set": {"training.stop_after": 2, "training.eval_every_epochs": 1, "data.validation_split": 0.2}})");
  const Result result = dgc.study({"--dry-run", "--only", "short|stops"});
  CHECK(result.code == 0);
  CHECK_THAT(result.out, Contains("short: 3 epochs or 7 steps, 2 of 2 seeds to train, 14 steps of") &&
                             Contains("stops: 3 epochs at most, 2 of 2 seeds to train"));
}

TEST_CASE("a training that its epochs have ended has not stalled, also without checkpoints") {
  const auto stops = [](int epochs) {
    return fmt::format(R"(, "stops": {{"set": {{"training.stop_after": 2, "training.eval_every_epochs": 1,
        "training.epochs": {}, "learning_rate": {{"type": "constant", "base": 0.05}}, "data.validation_split": 0.2}}}})",
                       epochs);
  };
  const Studied dgc(stops(1), "[1]");
  REQUIRE(dgc.study({"--only", "stops"}).code == 0);
  fs::remove_all(dgc.folder() / "out/stops/seed1/checkpoints");
  const std::string study = dgc.read("study.json");
  dgc.write("study.json",
            std::string(study).replace(study.find("\"training.epochs\": 1"), 20, "\"training.epochs\": 9"));
  const Result longer = dgc.study({"--only", "stops"});
  CHECK(longer.code == 2);
  CHECK_THAT(longer.out, Contains("stops seed 1 failed: ") && Contains("has a result and no checkpoint to go on from"));
}

TEST_CASE("a mistake in a study is said in one sentence") {
  const Studied dgc;
  const auto says = [&](const std::string& text, const std::string& what) {
    dgc.write("wrong.json", text);
    const Result result = dgc.run({"study", "wrong.json"});
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK_THAT(result.err, Contains("wrong.json") && Contains(what));
    CHECK_FALSE(fs::exists(dgc.folder() / "runs"));
  };
  const std::string top = R"({"config": "tiny.json", "seeds": [1], )";
  says("[]", "must be an object, not an array");
  says(R"({"seeds": [1]})", "runs: is required");
  says(top + R"("runs": {}})", "runs: must name at least one run");
  says(top + R"("runs": {"a": {}}, "sedes": [2]})", "sedes: there is no such key; did you mean \"seeds\"?");
  says(top + R"("runs": {"a": {"sets": {}}}})", "runs.a.sets: there is no such key; did you mean \"set\"?");
  const std::string in_set = "there is no such key; keys of the config stand in \"set\"";
  says(top + R"("runs": {"a": {"optimizer.sparsity": 0.9}}})", "runs.a.optimizer.sparsity: " + in_set);
  says(top + R"("runs": {"a": {}}, "training": {"epochs": 1}})", "training: " + in_set);
  says(top + R"("runs": {"a/b": {}}})", "runs.a/b: a run's name is that of a folder");
  says(top + R"("runs": {"a": {}}, "reference": "b"})",
       "reference: there is no run \"b\", with which a is to be compared");
  says(top + R"("runs": {"a": {"reference": "b"}}})", "runs.a.reference: there is no run \"b\"");
  says(top + R"("runs": {"report.html": {}}})", "runs.report.html: the study's report has this name");
  says(top + R"("runs": {"a": {"seeds": [1, 9007199254740993]}}})", "runs.a: --set seed=9007199254740993");
  says(top + R"("runs": {"a": {"seeds": [1, 1]}}})", "runs.a.seeds: has a number twice");
  says(top + R"("runs": {"a": {"seeds": [1, 2, 1]}}})", "runs.a.seeds: has a number twice");
  says(top + R"("runs": {"a": {"seeds": [1.5]}}})", "runs.a.seeds: must be a list of whole numbers");
  says(top + R"("runs": {"a": {"seeds": [-1]}}})", "runs.a.seeds: must be a list of whole numbers");
  says(top + R"("runs": {"a": {"seeds": 1}}})", "runs.a.seeds: must be a list of whole numbers");
  says(top + R"("runs": {"a": {"set": {"seed": 1}}}})", "runs.a.set.seed: the study itself sets it");
  says(top + R"("runs": {"a": {"set": {"output": "x"}}}})", "runs.a.set.output: the study itself sets it");
  says(top + R"("set": {"output": "x"}, "runs": {"a": {}}})", "set.output: the study itself sets it");
  says(top + R"("runs": {"a": {"set": {"optimizer.sparsity": 2}}}})", "runs.a: --set optimizer.sparsity=2");
  says(top + R"("runs": {"a": {"published": 0.9}}})", "runs.a.source: is required with \"published\"");
  says(top + R"("runs": {"a": {"published": 93.75, "source": "x"}}})", "runs.a: published: 93.75 is no test accuracy");
  says(top + R"("runs": {"a": {"published": -0.5, "source": "x"}}})", "runs.a: published: -0.5 is no test accuracy");
  says(R"({"seeds": [1], "runs": {"a": {}}})", "runs.a.config: is required, here or at the study's top");
  const Result only = dgc.study({"--only", "("});
  CHECK(only.code == 2);
  CHECK_THAT(only.err, Contains("--only (: this is no regular expression"));
}

}  // namespace dgc
