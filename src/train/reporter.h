#pragma once

#include <filesystem>
#include <map>
#include <set>

#include "config/options.h"
#include "run/metrics.h"
#include "run/progress.h"
#include "run/tensorboard.h"
#include "tasks/task.h"

namespace dgc {

// Tells people how the run gets on. Only rank 0 has a Reporter.
class Reporter {
 public:
  // steps: of the whole run. batch: samples in a step of all workers.
  Reporter(const Config&, const std::filesystem::path& run, const MetricsWriter::Start&, int64_t steps, int64_t batch);

  ~Reporter();  // logs the end of the last skipped steps, and how often ranks were late

  void begin() { metrics_.begin(); }  // to be called when nothing refuses the run any more
  void step(StepMetrics, double seconds);
  void eval(const EvalMetrics&);
  void final(FinalMetrics);
  void sync() { metrics_.sync(); }                // to be called before a checkpoint is saved, to which the rows belong
  void follow_name() { metrics_.follow_name(); }  // to be called only while the run holds its directory
  void require_written() const { metrics_.require_written(); }

 private:
  double samples_per_s() const { return train_samples_ / train_seconds_; }
  void tell_skipped(const StepMetrics&);
  void sum_up_skipped();
  void tell_absent(const StepMetrics&);
  void sum_up_absent();
  void tell_not_finite(const EvalMetrics&);

  const Config& config_;
  const Task& task_;
  MetricsWriter metrics_;
  TensorBoardWriter events_;
  Progress progress_;
  int64_t steps_, batch_;
  double train_seconds_ = 0;
  double train_samples_ = 0;
  int64_t first_skipped_ = 0, last_skipped_ = 0;  // while steps are being skipped, else 0
  std::set<int> known_as_late_;                   // ranks that were late before
  std::map<int, int64_t> absences_;               // by rank, since the last evaluation
  bool told_not_finite_ = false;                  // of the loss of an evaluation
  int64_t exchanges_ = 0;                         // since the last evaluation
  int64_t left_out_ = 0;  // utterances too short for their transcripts, since the last evaluation
};

}  // namespace dgc
