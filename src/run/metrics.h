#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "json/lines.h"
#include "run/metric.h"
#include "run/output_file.h"

// RUN/metrics.jsonl: one JSON object per line, told apart by "kind": "step", "eval" and, as the last line of a finished
// run, "final". A number that is NaN or infinite is written as null and read back as NaN.
namespace dgc {

inline constexpr const char* kMetricsFile = "metrics.jsonl";

struct StepMetrics {
  int64_t step = 0;         // finished optimizer steps, counted from 1
  int64_t local_steps = 1;  // so many steps up to this one had one exchange, and this row; 1 is not written
  double epoch = 0;         // passes over the training data, fractional
  double loss = kNoNumber;  // mean over all workers' samples of these steps
  double learning_rate = 0;
  double sparsity = 0;               // share of the compressed tensors' gradient that is not sent, 0 ... 1; 0 for dense
  std::string transport;             // "sparse", "split_reduce" or "dense" (also for sgd); "" in older files
  int64_t sent_bytes = 0;            // encoded bytes that each worker sent in these steps
  int64_t dense_bytes = 0;           // bytes of the whole gradient as fp32, for each of these steps
  int64_t group_bytes = 0;           // bytes that each worker also sent in its group; 0, not written: no groups
  double samples_per_s = kNoNumber;  // samples of text are words
  double seconds = kNoNumber;        // that these steps took; older files do not say
  double grad_norm = kNoNumber;
  bool skipped = false;             // a gradient was not finite, and no worker moved
  std::vector<int> absent_ranks{};  // ranks that were late for the exchange (exchange.wait); not written when all came
  double present = 1;  // the share of all workers' steps that the row covers: 1 where no rank was late; not written
  // The step's utterances that are too short for their transcripts, and so teach nothing; not written when 0.
  int64_t left_out = 0;

  double sent_per_step() const { return static_cast<double>(sent_bytes) / static_cast<double>(local_steps); }
  double ratio() const { return sent_bytes > 0 ? static_cast<double>(dense_bytes) / sent_bytes : kNoNumber; }
};

struct EvalMetrics {
  int64_t step = 0;
  double epoch = 0;
  Measures measures{};

  // The loss that steers the run: that of the validation set, or that of the test set where no validation set exists.
  double steering_loss() const { return measures[measures.has(kValidLoss) ? kValidLoss : kTestLoss]; }
};

// What each worker sent, averaged over a run. "After warm-up" means the steps at the highest sparsity of the run.
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
  double samples_per_s = kNoNumber;  // of all workers, over the run; samples of text are words
  double wall_seconds = kNoNumber;
  int64_t peak_memory_bytes = 0;
  std::string weights_xxh64{};  // 16 hexadecimal digits
  bool diverged = false;        // Rank::sound() is false; not written otherwise
  // Compression and exchange on rank 0, where they overlap with the backward pass; otherwise neither key is written.
  double exchange_ms = kNoNumber;   // milliseconds of compression and exchange per step
  double hidden_share = kNoNumber;  // share of exchange_ms while gradients were being computed, 0 ... 1
};

Row to_row(const StepMetrics& step);
Row to_row(const EvalMetrics& eval);
Row to_row(const FinalMetrics& final, const TrafficMeans& traffic);

// These throw a UserError that names `where` when a key that every version writes is missing, or one is of
// another type.
StepMetrics step_from_row(const Row& row, const std::string& where);
EvalMetrics eval_from_row(const Row& row, const std::string& where);
FinalMetrics final_from_row(const Row& row, const std::string& where);

// Both read RUN/metrics.jsonl, which may be missing. has_steps() says whether the run has made a step, as a row of one
// or the final row tells; a damaged file counts as one with steps. end_of() says where a finished run ended, and throws
// a UserError when the end of the file is damaged.
bool has_steps(const std::filesystem::path& run);
struct RunEnd {
  int64_t step = 0;
  double epoch = 0;
  bool sound = true;  // whether the test loss is finite, and the run has not said that it diverged
};
std::optional<RunEnd> end_of(const std::filesystem::path& run);

// Appends rows. OutputFile says what happens to them on a full disk.
class MetricsWriter {
 public:
  // What an earlier attempt has come to: its steps, how many of them follow the last exchange and have no row yet, and
  // whether the evaluation behind them is made again.
  struct Start {
    int64_t step = 0, unexchanged = 0;
    bool owes_evaluation = false;
  };
  // Keeps the rows of what an earlier attempt has come to; step 0 starts afresh. begin(), or the first new row, cuts
  // off the rest. Warns where other steps have no row, as somebody has cut the file, or a full disk has. Throws a
  // UserError when RUN/metrics.jsonl cannot be read or opened for writing.
  MetricsWriter(const std::filesystem::path& run, const Start&);

  void begin();  // to be called when nothing refuses the attempt any more; throws UserError
  void write(const StepMetrics& step);
  void write(const EvalMetrics& eval);
  void write(const FinalMetrics& final);       // adds TrafficMeans to the row
  void sync() { file_.sync(); }                // so that a power cut leaves the rows
  void follow_name() { file_.follow_name(); }  // OutputFile says what this does
  void require_written() const;                // throws UserError where a full disk has not taken all rows

 private:
  void append(const Row& row);

  OutputFile file_;
  std::optional<uint64_t> kept_ = 0;  // bytes of the file that stay; unset once the rest is cut off
  bool ends_with_newline_ = true;     // those bytes
  TrafficCounter traffic_;            // counts kept rows and new ones
};

}  // namespace dgc
