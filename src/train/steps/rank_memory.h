#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "models/executors.h"
#include "optim/ordered_reduce.h"
#include "train/steps/batch_input.h"

namespace dgc {

// An evaluation's network, and its device memory except for the activations.
struct EvaluatorMemory {
  // rows, most_labels: as for Executors and BatchInput.
  EvaluatorMemory(Network, Backend&, std::vector<int64_t> rows, int64_t most_labels, DType activations);

  Network network;
  Executors executors;
  BatchInput input;
  ParamLayout state_layout;
  Arena state;
  Buffer stats;  // LossStats
};

// The name in a checkpoint of what each micro-batch of a worker has: "state", "state1", "state2", ...
std::string part_name(const char* what, size_t part);

// The device memory of a rank, except for what the backend keeps for its ops. Each member allocates its own part and
// says what that part is for, so dgc plan makes a RankMemory on a device that only counts. The config, the network, the
// backend and the communicator must outlive it.
class RankMemory {
 public:
  struct MicroBatch {
    Arena state;  // carried along its streams of text
    Arena next_state;
    BatchInput input;
  };
  // What one worker has for itself besides the optimizer's u and v.
  struct Worker {
    Arena gradient;
    Arena statistics;
    Arena next_statistics;  // result of the current step; a skipped step drops it and each next_state
    std::vector<MicroBatch> micro_batches;
  };

  // Where workers compute, one after another. What is computed in several places goes on at the same time.
  struct Place {
    std::unique_ptr<Lane> lane;  // null: the workers compute on the rank's own backend
    Backend& backend;
    std::unique_ptr<Executors> executors;
    Buffer part_loss;  // LossStats of a micro-batch after the first one
  };

  // rows, most_labels: those of training batches, as for Executors and BatchInput. Everything is zero at first.
  // Collective, and throws, as make_optimizer() does; throws also what Executor's constructor throws.
  RankMemory(const Config&, const Network&, const std::vector<int64_t>& rows, int64_t most_labels, Backend&,
             Communicator&);
  // Makes the memory for activations, which training and evaluations use in turn: that of each place. To be called
  // once.
  void share_activations(std::initializer_list<EvaluatorMemory*> evaluations);  // null pointers are skipped
  // In the order of workers, and each worker's one after the other.
  void for_each_micro_batch(const std::function<void(MicroBatch&)>&);
  int64_t most_rows() const { return places.front().executors->most_rows(); }  // of a training batch

  ParamLayout params;
  ParamLayout trained;  // what the optimizer knows: the front of `params`, without what is frozen
  ParamLayout statistics;
  ParamLayout state;
  Arena weights;
  Arena mean_statistics;  // mean over all workers; filled by Rank::average_statistics()
  std::vector<Worker> workers;
  std::vector<Place> places;  // at least one
  StepRecord record;
  OrderedReduce statistics_sum;
  std::unique_ptr<Optimizer> optimizer;

 private:
  std::shared_ptr<Device> device_;
  std::vector<Buffer> activations_;
};

}  // namespace dgc
