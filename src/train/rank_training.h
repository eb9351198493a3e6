#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>

#include "config/options.h"
#include "run/checkpoint.h"
#include "run/metrics.h"
#include "run/run_directory.h"
#include "train/rank.h"
#include "train/reporter.h"

namespace dgc {

// One rank's part of a run: its steps, and what is due between them. All ranks make the same calls in the same order.
class RankTraining {
 public:
  // Goes on from the checkpoint that the run was resumed from, or starts from model.init_from's weights or random ones.
  // All arguments must outlive the RankTraining. Throws UserError where the run cannot go on from there. Collective.
  RankTraining(const Config&, RunDirectory&, const DataView&, Backend&, Communicator&);

  // Trains to the last step; to be called once. What train() in train/trainer.h throws of a run that has begun leaves
  // it on all ranks. Collective.
  void train();

 private:
  using Clock = std::chrono::steady_clock;

  // What there is to do behind a step.
  struct Due {
    bool evaluates = false;
    bool saves = false;
    bool checks = false;  // whether the replicas are compared
    bool stops = false;   // where a later attempt can go on
    bool ends = false;    // as the config has planned
    bool learns = true;   // whether the course of the training heeds the evaluation
    bool anything() const { return evaluates || saves || checks || stops || ends; }
  };

  void begin();
  Due due_now() const;
  bool owes_flush() const;
  void catch_up();
  void pause(const Due&);
  void evaluate_midway();
  void evaluate_at_end();
  EvalMetrics evaluated(EvalMetrics (Rank::*evaluate)());
  void learn();
  std::string save();
  [[noreturn]] void stop();
  void check_replicas();
  void tell_steps();
  void tell_end();

  const Config& config_;
  RunDirectory& run_;
  Communicator& communicator_;
  Device& device_;
  Rank rank_;
  CheckpointStore store_;
  std::optional<Reporter> reporter_;  // rank 0 has one
  int64_t steps_ = 0;                 // when the run ends; less than planned once the rank has stalled
  Clock::time_point told_;            // when the newest metrics were told, less the pauses since
  std::optional<EvalMetrics> eval_;   // the newest evaluation of this attempt
  std::string unsaved_;               // why the newest save failed, or ""
};

}  // namespace dgc
