#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "config/options.h"
#include "models/executors.h"
#include "optim/ordered_reduce.h"
#include "run/checkpoint.h"
#include "run/metrics.h"
#include "tasks/make.h"
#include "tasks/task.h"
#include "train/batch_input.h"
#include "train/evaluator.h"

namespace dgc {

// Throws UserError unless the model can train on this, all workers' batches included.
void check_fits(const Config&, const Dataset& train);

// One rank of a run: the weights, its workers one after another on one device, and its optimizer. All ranks make the
// same calls in the same order; what they return is the same everywhere unless said otherwise.
class Rank {
 public:
  // All must outlive it. One backend per rank, made by the thread that uses the rank.
  Rank(const Config&, const DataView&, Backend&, Communicator&);

  int64_t step() const { return step_; }  // finished steps
  // Where in the data: finished epochs times steps_per_epoch(), and the steps since. Equals step() unless the run was
  // resumed with another number of workers, which changes how long an epoch is.
  int64_t position() const { return position_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  double epoch() const { return static_cast<double>(position_) / static_cast<double>(steps_per_epoch_); }

  // Queues one step of all workers. Its metrics come later: next_metrics() must have been asked until it has none.
  void train_step();
  // Of the oldest finished step that has not been told yet, the same one on every rank at this point of the program;
  // none while the device may still be busy with it. samples_per_s is left to the caller.
  std::optional<StepMetrics> next_metrics();
  // Waits for all queued steps; next_metrics() then has them all.
  void finish_steps() { lag_ = 0; }
  // How many steps up to the last one that was told were skipped, one after another.
  int64_t skipped_in_row() const { return skipped_in_row_; }
  // Whether the run still gets anywhere: all weights and the loss of the newest evaluation are finite, and steps are
  // skipped for no other reason than a loss scale that has yet to be found.
  bool sound() const;
  // Whether some rank had been asked to stop when the last step that was told began.
  bool asked_to_stop() const { return asked_to_stop_; }

  // All of the validation set where there is one, else of the test set, with the BatchNorm statistics averaged over all
  // workers.
  EvalMetrics evaluate();
  EvalMetrics evaluate_all();  // and of the test set in any case
  // Tells a plateau schedule the result of an evaluation.
  void adapt_learning_rate(const EvalMetrics&);
  // Sends what the optimizer still holds back. Training cannot go on afterwards.
  void flush();
  bool flushed() const { return flushed_; }

  // Compares a hash of every tensor with rank 0's. Throws InternalError that names the rank and the tensor.
  void check_replicas();
  double wall_seconds() const;        // since this was made, and those of earlier attempts up to the checkpoint
  std::string weights_xxh64() const;  // over all parameters in order, without the arena's gaps
  const Arena& weights() const { return weights_; }

  // Returns why nothing was saved, as a sentence; nothing when the checkpoint is there. A file that cannot be written,
  // on whatever rank, leaves the earlier checkpoints as they were.
  [[nodiscard]] std::string save(const CheckpointStore&, int64_t keep);
  // Goes on where the checkpoint was made. Of another number of workers, it shares out what they held back, keeping the
  // sum, and says so in the log. Throws UserError when it is of another model or other data.
  void restore(const Checkpoint&);

  // What was hidden of compression and exchange; none where they come after the backward pass.
  std::optional<ExchangeTime> exchange_time() const { return optimizer_->exchange_time(); }

  // Of this rank's device, at any time so far.
  size_t peak_bytes() const { return device_->peak_bytes(); }

 private:
  // What one worker has for itself besides the optimizer's u and v.
  struct Worker {
    Arena gradient;
    Arena statistics;
    Arena next_statistics;  // of the step that is under way; dropped when it is skipped, as is the next state
    Arena state;            // carried along the worker's streams of text
    Arena next_state;
    BatchInput input;
  };

  void average_statistics();
  Measures run(Evaluator&);  // rank 0 does, and tells the others
  std::vector<ManifestFile> save_workers(const CheckpointStore&);
  std::vector<ManifestFile> files_of_all(const std::vector<ManifestFile>& own);
  void publish(const CheckpointStore&, int64_t keep, const std::vector<ManifestFile>& worker_files);
  void require_same_data(const Checkpoint&, int64_t saved_workers) const;
  void restore_workers(const Checkpoint&);
  void share_out(const Checkpoint&, int64_t saved_workers);
  void move_position(const Checkpoint&, int64_t saved_workers);
  void stage_batches();
  void tell_bad_examples(const Batch&);
  void queue_step();
  void run_worker(int local);  // leaves the gradient in the worker and the loss in its share
  void keep_unless_skipped(const Arena& next, const Arena& arena);
  int workers() const { return communicator_.size() * static_cast<int>(workers_.size()); }
  int first_worker() const { return communicator_.rank() * static_cast<int>(workers_.size()); }
  // The first worker of a local worker's group, over all ranks: u and v of the group are in its file.
  int64_t group_of(int64_t local) const {
    const int64_t worker = first_worker() + local;
    return worker - worker % config_.exchange.workers_per_group;
  }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();  // before all else is made
  const Config& config_;
  const Task& task_;
  DataView data_;
  Communicator& communicator_;
  Backend& backend_;
  std::shared_ptr<Device> device_;
  Network network_;
  Network tested_network_;  // for as many streams of text as an evaluation has; of images the same
  ParamLayout params_;
  ParamLayout statistics_;
  ParamLayout state_;
  Arena weights_;
  Arena mean_statistics_;  // over all workers; filled by average_statistics()
  std::vector<Worker> workers_;
  Executors executors_;
  int64_t terms_;  // of the loss of a worker's batch
  std::unique_ptr<Evaluator> test_evaluator_;
  std::unique_ptr<Evaluator> valid_evaluator_;  // null: there is no validation set
  Buffer activations_;                          // of the executors and evaluators, in turn
  StepRecord record_;
  std::unique_ptr<Optimizer> optimizer_;
  OrderedReduce statistics_sum_;
  LrSchedule lr_;
  PlateauState plateau_;
  SparsitySchedule sparsity_;
  int64_t steps_per_epoch_ = 0;
  int64_t step_ = 0;
  int64_t position_ = 0;
  bool flushed_ = false;
  std::unique_ptr<Batches> batches_;  // made at the first step; one step ahead
  std::set<std::string> told_;        // bad examples
  std::deque<StepMetrics> untold_;    // queued steps, the oldest first
  size_t lag_ = 0;                    // how many of them the device may be busy with
  int64_t skipped_in_row_ = 0;
  bool asked_to_stop_ = false;
  bool finite_loss_ = true;  // of the newest evaluation
  double earlier_seconds_ = 0;
};

}  // namespace dgc
