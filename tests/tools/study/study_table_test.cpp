#include "tools/study/study_table.h"

#include <algorithm>
#include <catch.hpp>
#include <string>
#include <vector>

#include "config/config.h"
#include "run/file_io.h"
#include "tests/support/run_files.h"
#include "tools/report/report.h"

namespace dgc {
namespace {

using Catch::Contains;

// A study in a folder of its own, whose trainings are made up.
class MadeStudy {
 public:
  explicit MadeStudy(const std::string& runs, const std::string& top = "") {
    const auto write = [&](const std::string& file, const std::string& data_and_model) {
      folder_.write(file, "{" + data_and_model + R"(,
        "training": {"epochs": 2, "batch_per_worker": 8}, "learning_rate": {"type": "constant", "base": 0.1},
        "optimizer": {"type": "dgc", "warmup": {"epochs": 1}}})");
    };
    const std::string image = R"("data": {"type": "synthetic"}, "model": {"type": "resnet", "classes": 10, "depth": )";
    write("image.json", image + "8}");
    write("deep.json", image + "14}");
    write("lm.json", R"("data": {"type": "text", "train": "a", "valid": "b", "test": "c"},
                        "model": {"type": "lstm_lm", "hidden": 6, "vocabulary": 9})");
    write("speech.json", R"("data": {"type": "librispeech", "path": "a", "train": ["train-clean-100"]},
                            "model": {"type": "deep_speech", "hidden": 8})");
    folder_.write("study.json", R"({"config": "image.json", "seeds": [1])" + top + R"(, "runs": {)" + runs + "}}");
    study = load_study((folder_.path() / "study.json").string());
    trainings_ = trainings_of(study, folder_.path() / "out");
  }

  const StudyTraining& training(const std::string& run, uint64_t seed = 1) const {
    return *std::ranges::find_if(trainings_,
                                 [&](const StudyTraining& one) { return one.run->name == run && one.seed == seed; });
  }
  // What dgc train would have written, with this outcome.
  void make(const StudyTraining& training, double outcome, bool finished = true) const {
    std::filesystem::create_directories(training.directory);
    write_file(training.directory / "config.json", resolved_json(training.config));
    MetricsWriter writer(training.directory, {0});
    for (int64_t step = 1; step <= 20; ++step) {
      StepMetrics metrics = test::example_step(step);
      if (!compresses(training.config.optimizer.type)) metrics.sparsity = 0, metrics.sent_bytes = 8000;
      writer.write(metrics);
    }
    EvalMetrics eval = test::example_eval(20);
    eval.measures.set(kTestAccuracy, outcome);
    eval.measures.set(kTestPerplexity, outcome);
    writer.write(eval);
    if (finished)
      writer.write(FinalMetrics{.eval = eval, .samples_per_s = 1, .wall_seconds = 1, .weights_xxh64 = "0f"});
  }
  // The table, with one blank between its words.
  std::string table() const {
    std::vector<TrainingNote> notes;
    const std::vector<RunGroup> groups = study_groups(study, trainings_, notes);
    std::string out;
    for (const char c : summary_text(study_table(study, trainings_, groups, notes))) {
      if (c != ' ' || out.empty() || out.back() != ' ') out += c;
    }
    return out;
  }

  Study study;

 private:
  test::TempRun folder_;
  std::vector<StudyTraining> trainings_;
};

}  // namespace

TEST_CASE("a study's table has the outcomes of results alone, and compares no run with itself") {
  const MadeStudy made(R"("dense": {"set": {"optimizer": {"type": "sgd"}}}, "dgc": {}, "late": {}, "never": {})",
                       R"(, "reference": "dense")");
  made.make(made.training("dense"), 0.7);
  made.make(made.training("dgc"), 0.75);
  made.make(made.training("late"), 0.9, false);
  const std::string table = made.table();
  INFO(table);
  CHECK_THAT(table, Contains(" seeds test accuracy against dense sent per worker and step ratio\n"));
  CHECK_THAT(table, Contains("dense 1 70.00 % – 7.81 KiB 1.00x\n"));
  CHECK_THAT(table, Contains("dgc 1 75.00 % +5.00 points 20 B 400.0x\n"));  // after warm-up
  CHECK_THAT(table, Contains("late 0 of 1 – – 20 B 400.0x\n"));
  CHECK_THAT(table, Contains("never 0 of 1 – – – –\n"));
}

TEST_CASE("a study with several references says with which one a run is compared") {
  const MadeStudy made(R"("a": {}, "b": {"reference": "a"}, "c": {"reference": "b"})");
  made.make(made.training("a"), 0.5);
  made.make(made.training("b"), 0.6);
  made.make(made.training("c"), 0.58);
  const std::string table = made.table();
  INFO(table);
  CHECK_THAT(table, Contains(" seeds test accuracy against sent"));
  CHECK_THAT(table, Contains("a: +10.00 points") && Contains("b: -2.00 points"));
}

TEST_CASE("a study of several kinds of data names no metric above its outcomes") {
  const MadeStudy made(R"("image": {}, "words": {"config": "lm.json"})");
  made.make(made.training("image"), 0.5);
  made.make(made.training("words"), 90);
  const std::string table = made.table();
  INFO(table);
  CHECK_THAT(table,
             Contains(" seeds outcome sent") && Contains("image 1 50.00 % 20 B") && Contains("words 1 90.00 20 B"));
}

TEST_CASE("a run of a study has its own config where it names one") {
  const MadeStudy made(R"("plain": {}, "deep": {"config": "deep.json"})");
  CHECK_THAT(made.training("plain").run->config, Catch::EndsWith("/image.json"));
  CHECK_THAT(made.training("deep").run->config, Catch::EndsWith("/deep.json"));
  CHECK_FALSE(made.training("plain").config.model == made.training("deep").config.model);
}

TEST_CASE("a training whose outcome is no number does not count in a study, and a note says so") {
  const MadeStudy made(R"("dgc": {"seeds": [1, 2]})");
  made.make(made.training("dgc", 1), 0.75);
  made.make(made.training("dgc", 2), kNoNumber);
  const std::string table = made.table();
  INFO(table);
  CHECK_THAT(table, Contains("dgc 1 of 2 75.00 % 20 B"));
  CHECK_THAT(table, Contains("dgc seed 2 does not count: its test accuracy is not finite\n"));
}

TEST_CASE("which changes of a study make another experiment of a result") {
  const MadeStudy made(R"("dgc": {}, "speech": {"config": "speech.json"}, "steps": {"set": {"training.max_steps": 20}},
                          "cosine": {"set": {"training.max_steps": 20, "learning_rate.type": "cosine"}})");
  for (const char* run : {"dgc", "speech", "steps", "cosine"}) made.make(made.training(run), 0.75);
  const auto state_with = [&](const std::string& run, const std::string& setting) {
    StudyTraining asked = made.training(run);
    std::vector<std::string> overrides = asked.run->overrides_for(1);
    overrides.push_back(setting);
    asked.config = load_config(asked.run->config, overrides);
    return standing_of(asked).state;
  };
  using enum Standing::State;
  for (const char* same : {"threads=7", "exchange.failure_timeout_s=7", "exchange.communicator=threads"}) {
    CAPTURE(same);
    CHECK(state_with("dgc", same) == done);
  }
  CHECK(state_with("dgc", "exchange.transport=dense") == refused);
  CHECK(state_with("dgc", "optimizer.momentum=0.5") == refused);
  CHECK(state_with("speech", "data.path=b") == done);
  CHECK(state_with("steps", "training.epochs=3") == done);
  CHECK(state_with("cosine", "training.epochs=3") == refused);  // the same steps have had other rates
  CHECK(state_with("speech", R"(data.train=["train-clean-360"])") == refused);
}

}  // namespace dgc
