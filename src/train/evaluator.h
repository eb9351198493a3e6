#pragma once

#include <functional>
#include <memory>

#include "data/dataset.h"
#include "tasks/task.h"
#include "train/steps/rank_memory.h"

namespace dgc {

// Runs a whole data set through a network, in order and without augmentation. A text starts from a state of zero. All
// arguments must outlive the Evaluator.
class Evaluator {
 public:
  // A data set, and the scorer that gets the network's outputs for it.
  struct Scored {
    const Dataset& data;
    std::unique_ptr<Scorer> scorer;
  };
  // batch: as for Dataset::evaluation_batches().
  Evaluator(const Network&, Backend&, Scored, int64_t batch, int loader_threads, DType activations = DType::f32);

  EvaluatorMemory& memory() { return memory_; }  // its executors must be attached to memory before run()

  // on_output, if any, sees each batch with the network's output for it, in device memory. For images, the output is
  // the logits [rows, classes]. Throws UserError for a file that cannot be read, and Interrupted once an InterruptGuard
  // has noted a signal.
  using OnOutput = std::function<void(const Batch&, ConstView output)>;
  Measures run(const Arena& weights, const Arena& statistics, const OnOutput& on_output = {});
  // The measures of the last run. Before the first run only the metrics are valid, not the values.
  Measures measures() const { return scored_.scorer->measures(); }

 private:
  Backend& backend_;
  Scored scored_;
  int loader_threads_;
  int64_t batch_;
  EvaluatorMemory memory_;  // with an executor for each number of rows that a batch may have
};

}  // namespace dgc
