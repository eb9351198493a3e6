#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "json/lines.h"
#include "tests/commands/child.h"
#include "tests/support/json_lines.h"
#include "tests/support/run_files.h"

namespace dgc::test {

// Epochs of a training that lasts long enough to be disturbed on its way, and then comes to its end: 720 steps. With
// sanitizers a step takes several times as long.
#ifdef DGC_SANITIZED
constexpr int kLongEpochs = 15;
#else
constexpr int kLongEpochs = 120;
#endif

constexpr int kEndlessEpochs = 100'000;  // epochs of a training that only its test ends

// Arguments of a training that saves often, and takes long enough to be disturbed.
inline std::vector<std::string> long_run(const std::string& out, const std::vector<std::string>& more = {},
                                         int epochs = kLongEpochs) {
  std::vector<std::string> words = {"train", "tiny.json",
                                    "--out", out,
                                    "--set", fmt::format("training.epochs={}", epochs),
                                    "--set", "training.eval_every_epochs=0",
                                    "--set", "checkpoint.every_steps=10"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Result {
  int code = 0;
  std::string out, err;
};

// The dgc program in a folder of its own, where tiny.json lies: a network that trains in a moment on
// the processor, 6 steps an epoch.
class Program {
 public:
  Program() {
    write("tiny.json", R"({
      "device": "cpu", "threads": 1, "workers_per_rank": 4,
      "model": {"type": "resnet", "depth": 8, "width": 4, "classes": 4},
      "data": {"type": "synthetic", "height": 8, "width": 8, "channels": 1, "classes": 4, "train_samples": 100,
               "test_samples": 30},
      "training": {"epochs": 3, "batch_per_worker": 4},
      "optimizer": {"type": "dgc", "momentum": 0.9, "nesterov": true, "sparsity": 0.98, "warmup": {"epochs": 1}},
      "learning_rate": {"type": "cosine", "base": 0.05}})");
  }

  const std::filesystem::path& folder() const { return folder_.path(); }
  void write(const std::string& file, const std::string& text) const { folder_.write(file, text); }
  std::string read(const std::string& file) const { return folder_.read(file); }

  Result run(const std::vector<std::string>& arguments) const {
    Child child(folder(), arguments);
    const int code = child.wait();
    return {code, child.out(), child.err()};
  }

  std::vector<Row> rows(const std::string& run) const {
    const auto path = folder() / run / "metrics.jsonl";
    return std::filesystem::exists(path) ? read_json_lines(path.string()) : std::vector<Row>{};
  }
  std::string final_hash(const std::string& run) const {
    const auto all = rows(run);
    return all.empty() ? "no rows" : all.back().text("weights_xxh64").value_or("no final row");
  }
  // Newest first.
  std::vector<std::string> checkpoints(const std::string& run) const {
    std::vector<std::string> names;
    const auto folder_of_run = folder() / run / "checkpoints";
    if (!std::filesystem::exists(folder_of_run)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_of_run)) {
      if (entry.path().filename().string().starts_with("step-")) names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names, std::greater<>());
    return names;
  }

 private:
  TempRun folder_;
};

// lm.json: a language model of three short texts beside it, in the folder of the program.
inline void write_language_model(const Program& dgc) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "the cat sat on a mat\n";
  for (const char* name : {"train.txt", "valid.txt", "test.txt"}) dgc.write(name, text);
  dgc.write("lm.json", R"({
    "device": "cpu", "threads": 1, "workers_per_rank": 2,
    "model": {"type": "lstm_lm", "hidden": 6},
    "data": {"type": "text", "train": "train.txt", "valid": "valid.txt", "test": "test.txt", "bptt": 3,
             "eval_streams": 2},
    "training": {"epochs": 1, "batch_per_worker": 2},
    "optimizer": {"type": "dgc", "momentum": 0, "sparsity": 0.9, "clip_norm": 0.25},
    "learning_rate": {"type": "constant", "base": 1}})");
}

// Exactly one line, which is what people read of an error.
inline bool is_one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

}  // namespace dgc::test
