#pragma once

#include <memory>

#include "kernels/counting_backend.h"
#include "train/steps/step_computation.h"

namespace dgc {

// The network that a config trains, without its data. Throws UserError as make_network() does.
Network planned_network(const Config&);

// Rank 0 of a run, on a device that only counts and between ranks that are not there. Nothing is opened, allocated or
// computed.
class PlannedRank {
 public:
  explicit PlannedRank(const Config&);  // throws UserError as planned_network() does

  const Network& network() const { return network_; }
  const CountingDevice& device() const { return *device_; }
  DType activations() const;
  int64_t places() const { return std::ssize(memory_.places); }  // where workers compute at the same time
  int64_t activation_bytes() const {
    return static_cast<int64_t>(memory_.places.front().executors->activation_bytes());
  }
  // Bytes of the tensors that a checkpoint has at the end of a round: in the files of this rank's workers, and in those
  // that the rank writes for all.
  int64_t saved_by_workers() const;
  int64_t saved_for_all() const;
  bool saves_momentum() const;  // in those for all
  // What each op of one training step at the final sparsity would cost, from the arrival of the batches to new weights.
  std::vector<OpCost> step();
  const std::set<PlannedConv>& convolutions() const { return backend_.convolutions(); }  // of the steps so far

 private:
  Config config_;
  Network network_;
  std::shared_ptr<CountingDevice> device_;
  CountingBackend backend_;
  std::unique_ptr<Communicator> ranks_;
  RankMemory memory_;
  std::unique_ptr<StepComputation> computation_;
  std::unique_ptr<EvaluatorMemory> test_, valid_;  // valid_: null where the run has no validation set
};

}  // namespace dgc
