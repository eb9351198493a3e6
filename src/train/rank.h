#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "config/options.h"
#include "run/checkpoint.h"
#include "run/metrics.h"
#include "run/run_state.h"
#include "tasks/task.h"
#include "train/evaluator.h"
#include "train/initial_weights.h"
#include "train/steps/rank_memory.h"
#include "train/steps/step_computation.h"

namespace dgc {

// Throws UserError unless the config's network can train on `train`, which must hold at least one batch for every
// worker.
void check_fits(const Config&, const Network&, const Dataset& train);

// Whether what is due every so many steps (0: never) has become due in the last `steps` steps.
constexpr bool due(int64_t step, int64_t every, int64_t steps = 1) {
  return every > 0 && step / every > (step - steps) / every;
}

// One rank of a run: the weights, the rank's workers, which run on one device, one after another or workers_at_once at
// a time, and the optimizer. All ranks make the same calls in the same order. A call returns the same on every rank
// unless its comment says otherwise.
class Rank {
 public:
  // All arguments must outlive the Rank, of the DataView what it refers to. Each rank has its own backend, made by the
  // thread that uses the rank.
  Rank(const Config&, const DataView&, Backend&, Communicator&);

  int64_t step() const { return state_.step; }  // finished steps
  // The position in the data: finished epochs times steps_per_epoch(), plus the steps since. Equals step() unless the
  // run was resumed with another number of workers, which changes how long an epoch is.
  int64_t position() const { return state_.position; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  double epoch() const { return epoch_at(state_.position); }
  // What the config plans for all ranks after the step that is `ahead` steps later than the last one (0: the last one).
  // What is planned by steps is due there if it has become due in any of the `steps` steps up to that one.
  struct Planned {
    bool evaluates = false;
    bool saves = false;
    bool anything() const { return evaluates || saves; }
  };
  Planned planned(int64_t ahead, int64_t steps) const;

  // Queues one step of all workers, or, if this rank was late (exchange.wait), takes over the next exchange of the
  // others, and step() becomes theirs, or waits until its own messages are exchanged. Before the next call,
  // next_metrics() must be called until it returns nothing.
  void train_step();
  // Why the next step has no batches, so that train_step() will throw this; null where it has. The finished steps are
  // whole, and can be saved.
  std::exception_ptr lack() const { return lack_; }
  // If the last step ended with an exchange in which all ranks waited for each other: the number of steps since the
  // exchange before it of that kind, the last step included. Else 0.
  int64_t met() const { return met_; }
  // Steps behind the last exchange, in which each worker has weights of its own.
  int64_t unexchanged() const { return computation_->unexchanged(); }
  // The metrics of the oldest exchange not returned yet, which is the same one on every rank at this point of the
  // program; nothing while the device may still be busy with it. The caller sets seconds and samples_per_s.
  std::optional<StepMetrics> next_metrics();
  // Until the next train_step(), next_metrics() waits for queued steps and returns them all.
  void finish_steps() { lag_ = 0; }
  // What was skipped up to the last step that next_metrics() returned.
  const Skipped& skipped() const { return state_.skipped; }
  // Whether the run still makes progress: all weights and the loss of the newest evaluation are finite, and steps are
  // skipped for no other reason than a loss scale that has yet to be found.
  bool sound() const;
  // Whether all ranks have to stop behind this step: when the last step that next_metrics() returned began, a signal
  // had reached some rank, or some rank's loader had met a file that it cannot read, which is the rank's lack() now.
  bool asked_to_stop() const { return asked_to_stop_; }

  // Evaluates the validation set where there is one, else the test set, with the BatchNorm statistics averaged over all
  // workers. Throws Interrupted on every rank when a signal reaches one that computes meanwhile, under an
  // InterruptGuard.
  EvalMetrics evaluate();
  EvalMetrics evaluate_all();  // evaluate(), and the test set in any case
  // Whether the evaluation at this step has failed, by owe_evaluation() in this attempt or an earlier one. Ends with
  // the next evaluation or step.
  bool owes_evaluation() const { return state_.owes_evaluation; }
  void owe_evaluation() { state_.owes_evaluation = true; }
  // Tells a plateau schedule the result of an evaluation.
  void adapt_learning_rate(const EvalMetrics&);
  // Compares an evaluation with the best one so far, by the loss that a plateau schedule would go by.
  void compare_with_best(const EvalMetrics&);
  // Whether the best evaluation is one of this step.
  bool at_best() const { return state_.best.step == state_.step; }
  // Whether so many evaluations have passed without a better one that the run ends (training.stop_after).
  bool stalled() const { return config_.training.stop_after && state_.best.since >= *config_.training.stop_after; }
  const BestEvaluation& best() const { return state_.best; }
  // Sends what the optimizer still holds back. Training cannot go on afterwards.
  void flush();
  bool flushed() const { return state_.flushed; }

  // Compares a hash of every tensor with rank 0's. Throws InternalError that names the rank and the tensor.
  void check_replicas();
  double wall_seconds() const;        // since construction, plus earlier attempts up to the checkpoint
  std::string weights_xxh64() const;  // hash of all parameters in order, without the arena's gaps
  const Arena& weights() const { return memory_.weights; }
  const Network& network() const { return network_; }

  // Takes the weights and statistics of a file in the place of random ones. To be called before the first step.
  void start_from(const InitialWeights&);

  // Returns "" when the checkpoint is saved, else the reason why not. When any rank cannot write a file, the earlier
  // checkpoints stay as they were.
  [[nodiscard]] std::string save(CheckpointStore&, int64_t keep);
  // Goes on where the checkpoint was made. When the number of workers has changed, restore() shares out what the old
  // workers held back, keeping the sum, and says so in the log. Throws UserError for a checkpoint of another model
  // or vocabulary, of epochs of another length, or made with other arithmetic (device, threads, conv_plans). Other data
  // with epochs of the same length are only a warning.
  void restore(const Checkpoint&);

  // Time of compression and exchange, and how much of it the backward pass hid; nothing where both follow the backward
  // pass.
  std::optional<ExchangeTime> exchange_time() const { return memory_.optimizer->exchange_time(); }

  // How many of the rank's workers compute at the same time.
  int64_t workers_at_once() const { return std::ssize(memory_.places); }

  // The most memory that this rank's device has held so far.
  size_t peak_bytes() const { return device_->peak_bytes(); }

 private:
  using Worker = RankMemory::Worker;

  void average_statistics();
  Measures run(Evaluator&);  // the ranks share the batches out, but a text is work for rank 0 alone
  std::vector<ManifestFile> save_workers(const CheckpointStore&);
  std::vector<ManifestFile> files_of_all(const std::vector<ManifestFile>& own);
  void publish(CheckpointStore&, int64_t keep, const std::vector<ManifestFile>& worker_files);
  RunState state_to_save() const;
  void require_same_arithmetic(const Checkpoint&) const;
  void require_same_data(const Checkpoint&) const;
  void require_way_on(const Checkpoint&) const;
  void restore_workers(const Checkpoint&);
  void share_out(const Checkpoint&);
  void move_position(const Checkpoint&);
  void begin_own_step();
  bool next_step_ends_part() const;
  bool everyone_must_come() const;
  void report_later(int64_t local_steps, const Attendance&);
  double epoch_at(int64_t position) const {
    return static_cast<double>(position) / static_cast<double>(steps_per_epoch_);
  }
  struct Rates {
    double learning_rate = 0;
    double sparsity = 0;  // 0 where the optimizer does not compress
  };
  Rates rates_at(int64_t position) const;  // of the step that begins there
  void stage_batches();
  size_t most_lag() const;
  bool will_lack() const;
  void zero_states();
  void tell_bad_examples(const Batch&);
  int workers() const { return communicator_.size() * static_cast<int>(memory_.workers.size()); }
  int first_worker() const { return communicator_.rank() * static_cast<int>(memory_.workers.size()); }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();  // declared first, so set first
  const Config& config_;
  const std::string conv_plans_xxh64_;  // read once, as the file may change or go while the run goes on
  const Task& task_;
  DataView data_;
  Communicator& communicator_;
  Backend& backend_;
  std::shared_ptr<Device> device_;
  Network network_;
  RankMemory memory_;
  std::unique_ptr<StepComputation> computation_;
  std::unique_ptr<Evaluator> test_evaluator_;
  std::unique_ptr<Evaluator> valid_evaluator_;  // null: there is no validation set
  LrSchedule lr_;
  RunState state_;
  SparsitySchedule sparsity_;
  int64_t steps_per_epoch_ = 0;
  int64_t met_ = 0;
  int64_t unmet_ = 0;  // steps behind the last exchange in which all ranks have waited for each other
  std::exception_ptr lack_;
  std::unique_ptr<Batches> batches_;  // made at the first step, and behind steps that are left out; one step ahead
  std::set<std::string> told_;        // bad examples in the log already
  struct Untold {
    StepMetrics metrics;
    int64_t worker_steps = 0;  // Attendance::worker_steps
  };
  std::deque<Untold> untold_;  // of queued steps that end with an exchange, the oldest first
  size_t lag_ = 0;             // how many of untold_ the device may be busy with
  bool asked_to_stop_ = false;
  bool finite_loss_ = true;  // whether the newest evaluation's loss is finite, and what people compare
};

}  // namespace dgc
