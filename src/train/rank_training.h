#pragma once

#include <chrono>
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
  // Takes the memory that the run needs, and weights: random ones, or model.init_from's. All arguments must outlive the
  // RankTraining, of the DataView what it refers to. Throws UserError, before anything has been written. Collective.
  RankTraining(const Config&, RunDirectory&, const DataView&, Backend&, Communicator&);

  // Takes over the checkpoint of a resumed run, and describes the run in its directory. Throws UserError where the run
  // cannot go on from there, and its directory still describes it as before. Collective.
  void begin();

  int64_t workers_at_once() const { return rank_.workers_at_once(); }  // of this rank

  // Trains to the last step; to be called once, behind begin(). Throws on all ranks what train() (train/trainer.h)
  // throws of a run that has begun. Collective.
  void train();

 private:
  using Clock = std::chrono::steady_clock;

  // What there is to do behind a step.
  struct Due : Rank::Planned {
    bool checks = false;  // whether the replicas are compared
    bool stops = false;   // this attempt ends here, saved, for --resume
    bool ends = false;    // as the config has planned
    bool learns = true;   // whether the course of the training heeds the evaluation
    bool anything() const { return Planned::anything() || checks || stops || ends; }
  };

  Due due_now() const;
  bool owes_flush() const;
  void catch_up();
  void pause(const Due&);
  void evaluate_midway();
  void evaluate_at_end();
  void evaluate_again();
  EvalMetrics evaluated(EvalMetrics (Rank::*evaluate)());
  [[noreturn]] void throw_end(const std::exception_ptr& end) const;
  void learn();
  std::string save();
  std::string newest() const;
  std::string way_on() const;
  [[noreturn]] void throw_unsaved() const;
  void tell_save();
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
  bool away_ = false;                 // whether it failed as the run's directory is no longer there
  uint64_t failed_saves_ = 0;         // in a row
};

}  // namespace dgc
