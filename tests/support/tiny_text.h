#pragma once

#include <fmt/format.h>

#include "tests/support/run_files.h"
#include "tests/support/tiny.h"

// Language models that train in milliseconds.
namespace dgc::test {

// Sentences of two to five of ten words, from a fixed pattern.
inline std::string tiny_text(int sentences, int first = 0) {
  std::string text;
  for (int s = first; s < first + sentences; ++s) {
    for (int w = 0; w < 2 + s * s % 4; ++w)
      text += fmt::format("{}w{}", w == 0 ? "" : " ", (s * 3 + w * w * 5) % 11 % 10);
    text += "\n";
  }
  return text;
}

// A folder with train.txt, valid.txt and test.txt, and configs that name them: 4 workers x 2 streams x 3 words, 12
// steps an epoch, 24 in all.
class TinyText {
 public:
  TinyText() {
    write("train.txt", tiny_text(65));
    write("valid.txt", tiny_text(20, 7));
    write("test.txt", tiny_text(20, 11));
  }
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

  Config config(const std::vector<std::string>& overrides = {}) const {
    static const char* const text = R"({
      "device": "cpu", "seed": 3, "threads": 1, "workers_per_rank": 4,
      "model": {"type": "lstm_lm", "hidden": 6, "dropout": 0.2},
      "data": {"type": "text", "train": "", "valid": "", "test": "", "bptt": 3, "eval_streams": 3},
      "training": {"epochs": 2, "batch_per_worker": 2, "eval_batch": 8},
      "optimizer": {"type": "sgd"},
      "learning_rate": {"type": "plateau", "base": 2, "factor": 0.25, "threshold": 0}})";
    std::vector<std::string> all = {
        R"(optimizer={"type": "dgc", "momentum": 0.5, "sparsity": 0.9, "clip_norm": 0.25, "warmup": {"epochs": 1}})"};
    for (const std::string name : {"train", "valid", "test"}) {
      all.push_back(fmt::format("data.{}={}", name, path(name + ".txt").string()));
    }
    all.insert(all.end(), overrides.begin(), overrides.end());
    return parse_config(text, "tiny_text.json", all);
  }

 private:
  TempRun folder_;
};

}  // namespace dgc::test
