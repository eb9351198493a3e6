#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "json/lines.h"
#include "run/run_directory.h"
#include "tests/support/json_lines.h"
#include "train/trainer.h"

// Trainings that take milliseconds. Most tests of them look into their memory, so they are trained on the processor,
// whatever GPU there is.
namespace dgc {

inline std::filesystem::path train(const Config& config, const TrainOptions& options) {
  return train([&] { return config; }, options);
}

namespace test {

inline const std::string kDgc =
    R"(optimizer={"type": "dgc", "momentum": 0.9, "nesterov": true, "weight_decay": 1e-4, "sparsity": 0.98,
                  "warmup": {"epochs": 1, "sparsity": [0.5, 0.75]}})";
inline const std::string kSgd = R"(optimizer={"type": "sgd", "momentum": 0.9, "nesterov": true, "weight_decay": 1e-4})";

// A convolution, BatchNorm, dropout and a matrix; 4 workers x 4 of 100 images: 6 steps an epoch, 18 in all.
inline Config tiny_config(const std::vector<std::string>& overrides = {}) {
  static const char* const text = R"({
    "device": "cpu", "seed": 3, "threads": 1, "workers_per_rank": 4,
    "model": {"type": "layers", "layers": [
      {"type": "conv2d", "out": 8, "kernel": 3, "pad": 1, "bias": false},
      {"type": "batch_norm", "relu": true},
      {"type": "max_pool", "kernel": 2, "stride": 2},
      {"type": "flatten"},
      {"type": "dropout", "p": 0.1},
      {"type": "linear", "out": 4}]},
    "data": {"type": "synthetic", "height": 8, "width": 8, "channels": 1, "classes": 4, "train_samples": 100,
             "test_samples": 30},
    "training": {"epochs": 3, "batch_per_worker": 4, "eval_batch": 16},
    "optimizer": {"type": "sgd"},
    "learning_rate": {"type": "cosine", "base": 0.05}})";
  std::vector<std::string> all = {kDgc};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return parse_config(text, "tiny.json", all);
}

inline std::vector<Row> metrics_of(const std::filesystem::path& run) {
  return read_json_lines((run / "metrics.jsonl").string());
}

inline std::vector<Row> rows_of_kind(const std::filesystem::path& run, const std::string& kind) {
  std::vector<Row> rows = metrics_of(run);
  std::erase_if(rows, [&](const Row& row) { return row.text("kind") != kind; });
  return rows;
}

inline std::string final_hash(const std::filesystem::path& run) {
  return metrics_of(run).back().text("weights_xxh64").value_or("no final row");
}

// Every row but for what depends on the clock, and on where a run was stopped.
inline std::vector<std::string> timeless_rows(const std::filesystem::path& run) {
  std::vector<std::string> lines;
  for (const Row& row : metrics_of(run)) {
    Row kept;
    for (const auto& [key, value] : row.fields()) {
      if (key != "samples_per_s" && key != "seconds" && key != "wall_seconds" && key != "peak_memory_bytes" &&
          key != "exchange_ms" && key != "hidden_share")
        kept.set(key, value);
    }
    lines.push_back(to_json_line(kept));
  }
  return lines;
}

}  // namespace test
}  // namespace dgc
