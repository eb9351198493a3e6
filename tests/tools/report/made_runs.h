#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "run/metrics.h"
#include "tests/support/run_files.h"
#include "tools/report/report.h"
#include "tools/report/report_data.h"

// Run directories with made-up rows, and the pages that reports make of them.
namespace dgc::test {

struct Made {
  std::string name = "run";
  std::string optimizer = R"({"type": "dgc", "warmup": {"epochs": 1}})";
  std::string model = R"({"type": "resnet", "depth": 8, "classes": 10})";
  std::string data = R"({"type": "synthetic"})";
  int64_t steps = 20;
  bool finished = true;
  std::optional<int64_t> sent_bytes = {};  // of each step
  double exchange_ms = kNoNumber, hidden_share = kNoNumber;
  uint64_t seed = 1;
  double accuracy = 0.75, loss = 2;  // the loss of the first step
  int workers = 1;
  double final_loss = 0.25;
};

inline void make_run(const TempRun& run, const Made& made) {
  const std::string config =
      R"({"seed": )" + std::to_string(made.seed) + R"(, "name": ")" + made.name + R"(", "model": )" + made.model + R"(,
    "data": )" +
      made.data +
      R"(, "training": {"epochs": 2, "batch_per_worker": 8}, "learning_rate": {"type": "constant", "base": 0.1}, "optimizer": )" +
      made.optimizer + R"(, "workers_per_rank": )" + std::to_string(made.workers) + "}";
  run.write("config.json", resolved_json(parse_config(config, "test")));
  MetricsWriter writer(run.path(), {0});
  for (int64_t step = 1; step <= made.steps; ++step) {
    auto metrics = example_step(step);
    if (made.optimizer.find("sgd") != std::string::npos) metrics.sparsity = 0, metrics.sent_bytes = 8000;
    if (made.sent_bytes) metrics.sent_bytes = *made.sent_bytes;
    metrics.loss = made.loss / static_cast<double>(step);
    if (step == 7) metrics.loss = kNoNumber, metrics.skipped = true;
    writer.write(metrics);
    if (step % 10 != 0) continue;
    EvalMetrics eval = example_eval(step);
    eval.measures.set(kTestAccuracy, made.accuracy);
    writer.write(eval);
  }
  if (!made.finished) return;
  writer.write(FinalMetrics{.eval = {.step = made.steps,
                                     .epoch = 2,
                                     .measures = {{&kTestLoss, made.final_loss}, {&kTestAccuracy, made.accuracy}}},
                            .samples_per_s = 1234,
                            .wall_seconds = 61,
                            .weights_xxh64 = "0123456789abcdef",
                            .exchange_ms = made.exchange_ms,
                            .hidden_share = made.hidden_share});
}

inline std::string report(const std::vector<std::filesystem::path>& runs) {
  TempRun out;
  write_report(read_groups(runs), out.path() / "report.html");
  return out.read("report.html");
}

// What stands between two texts.
inline std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before) + before.size();
  return text.substr(begin, text.find(after, begin) - begin);
}

inline bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

}  // namespace dgc::test
