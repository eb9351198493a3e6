#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "json/lines.h"
#include "run/metric.h"
#include "run/output_file.h"

// RUN/metrics.jsonl: one JSON object per line, told apart by "kind": "step", "eval" and, as the last line of a finished
// run, "final". A number that is NaN or infinite is written as null and read back as NaN.
namespace dgc {

inline constexpr const char* kMetricsFile = "metrics.jsonl";

struct StepMetrics {
  int64_t step = 0;         // finished optimizer steps, counted from 1
  double epoch = 0;         // passes over the training data, fractional
  double loss = kNoNumber;  // mean over the step's samples of all workers
  double learning_rate = 0;
  double sparsity = 0;      // share of the compressed tensors' gradient that stays home, 0 ... 1; 0 for dense
  std::string transport;    // of what is compressed: "sparse", "split_reduce" or "dense", as sgd's; "" in older files
  int64_t sent_bytes = 0;   // by each worker in this step, as encoded
  int64_t dense_bytes = 0;  // what the whole gradient takes as fp32
  int64_t group_bytes = 0;  // by each worker to the sum of its group, besides; 0 and not written: no groups
  double samples_per_s = kNoNumber;  // of text, words
  double grad_norm = kNoNumber;
  bool skipped = false;  // a gradient was not finite, and no worker moved
  // Of speech: utterances that are too short for their transcripts, and so teach nothing; 0 and not written: none.
  int64_t left_out = 0;

  double ratio() const { return sent_bytes > 0 ? static_cast<double>(dense_bytes) / sent_bytes : kNoNumber; }
};

struct EvalMetrics {
  int64_t step = 0;
  double epoch = 0;
  Measures measures{};

  // What the run is steered by: the loss of the validation set, or of the test set where there is no other.
  double steering_loss() const { return measures[measures.has(kValidLoss) ? kValidLoss : kTestLoss]; }
};

// What each worker sent, averaged over a run. "After warm-up" means: the steps at the highest sparsity of the run.
struct TrafficMeans {
  double sent_bytes = kNoNumber;  // per worker and step, over all steps
  double ratio = kNoNumber;       // dense bytes over sent bytes, both summed over all steps
  double sent_bytes_after_warmup = kNoNumber;
  double ratio_after_warmup = kNoNumber;
};

class TrafficCounter {
 public:
  void add(const StepMetrics& step);
  TrafficMeans means() const;

 private:
  struct Sums {
    double steps = 0, sent = 0, dense = 0;
  };
  Sums all_, at_highest_;
  double highest_sparsity_ = -1;
};

struct FinalMetrics {
  EvalMetrics eval{};
  double samples_per_s = kNoNumber;  // all workers together, over the run; of text, words
  double wall_seconds = kNoNumber;
  int64_t peak_memory_bytes = 0;
  std::string weights_xxh64{};  // 16 hexadecimal digits
  // Of rank 0, where they overlap with the backward pass; else there is no such key.
  double exchange_ms = kNoNumber;   // compression and exchange, per step
  double hidden_share = kNoNumber;  // of that time, 0 ... 1: while gradients were being computed
};

Row to_row(const StepMetrics& step);
Row to_row(const EvalMetrics& eval);
Row to_row(const FinalMetrics& final, const TrafficMeans& traffic);

// These throw a UserError that names `where` when a key is missing or of another type.
StepMetrics step_from_row(const Row& row, const std::string& where);
EvalMetrics eval_from_row(const Row& row, const std::string& where);
FinalMetrics final_from_row(const Row& row, const std::string& where);

// By RUN/metrics.jsonl, which need not be there: whether a run has made a step, as one counts whose file is damaged,
// and where it ended, if it did. The latter throws a UserError when the file is damaged.
bool has_steps(const std::filesystem::path& run);
std::optional<int64_t> final_step(const std::filesystem::path& run);

// Appends rows; what a full disk means to them, OutputFile says.
class MetricsWriter {
 public:
  // Keeps what an earlier attempt wrote up to and including `step`, and cuts off the rest; 0 starts afresh.
  // Throws a UserError when RUN/metrics.jsonl cannot be read or opened for writing.
  MetricsWriter(const std::filesystem::path& run, int64_t step);

  void write(const StepMetrics& step);
  void write(const EvalMetrics& eval);
  void write(const FinalMetrics& final);  // adds the means of what was sent

 private:
  void append(const Row& row);

  OutputFile file_;
  TrafficCounter traffic_;  // over kept rows and new ones
};

}  // namespace dgc
