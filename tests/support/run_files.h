#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "run/checkpoint.h"
#include "run/file_io.h"
#include "run/metrics.h"
#include "tests/support/new_folder.h"

// Run directories made by hand.
namespace dgc::test {

// An empty directory of its own, removed at the end.
class TempRun {
 public:
  TempRun() : path_(new_folder("dgc_train")) {}
  ~TempRun() { std::filesystem::remove_all(path_); }
  TempRun(const TempRun&) = delete;
  TempRun& operator=(const TempRun&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path_ / file, std::ios::binary) << text;
  }
  void append(const std::string& file, const std::string& text) const {
    std::ofstream(path_ / file, std::ios::binary | std::ios::app) << text;
  }
  std::string read(const std::string& file) const {
    std::ifstream stream(path_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::filesystem::path path_;
};

// What a run killed after `step` would have left: no later checkpoint, and later rows, but not the one that ends a run.
inline void kill_after(const std::filesystem::path& run, int64_t step) {
  bool ended = true;
  for (const std::filesystem::path& checkpoint : CheckpointStore(run).list()) {
    if (std::stoll(checkpoint.filename().string().substr(5)) <= step) continue;
    std::filesystem::remove_all(checkpoint);
    ended = false;
  }
  const std::filesystem::path metrics = run / kMetricsFile;
  const std::string rows = read_file(metrics);
  const size_t last = rows.rfind(R"({"kind":"final")");
  if (!ended && last != std::string::npos) std::filesystem::resize_file(metrics, last);
}

// How often a text has `what`.
inline size_t occurrences(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

inline StepMetrics example_step(int64_t step) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.epoch = static_cast<double>(step) / 10;
  metrics.loss = 2.0 / static_cast<double>(step);
  metrics.learning_rate = 0.1;
  metrics.sparsity = step <= 10 ? 0.75 : 0.999;
  metrics.transport = "sparse";
  metrics.sent_bytes = step <= 10 ? 2000 : 20;
  metrics.dense_bytes = 8000;
  metrics.samples_per_s = 100;
  metrics.seconds = 0.25;
  metrics.grad_norm = 0.5;
  return metrics;
}

inline EvalMetrics example_eval(int64_t step) {
  return {.step = step,
          .epoch = static_cast<double>(step) / 10,
          .measures = {{&kTestLoss, 1.5}, {&kTestAccuracy, 0.5}, {&kTestTop5, 0.9}}};
}

}  // namespace dgc::test
