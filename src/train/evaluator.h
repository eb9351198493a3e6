#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/task.h"
#include "train/steps/rank_memory.h"

namespace dgc {

// Runs a data set through a network, in order and without augmentation. A text starts from a state of zero. The backend
// and the data must outlive the Evaluator.
class Evaluator {
 public:
  // A data set, and the scorer that gets the network's outputs for it.
  struct Scored {
    const Dataset& data;
    std::unique_ptr<Scorer> scorer;
  };
  // The network is one for the set's sample(). batch: rows, as in EvaluationBatches.
  Evaluator(Network, Backend&, Scored, int64_t batch, int loader_threads, DType activations = DType::f32);

  EvaluatorMemory& memory() { return memory_; }  // its executors must be attached to memory before the first batch

  // on_output, if any, sees each batch with the network's output for it, in device memory. For images, the output is
  // the logits [rows, classes]. What is left out is a warning. Throws UserError for a file that cannot be read and for
  // a set of which nothing can be read, and Interrupted once an InterruptGuard has noted a signal.
  using OnOutput = std::function<void(const Batch&, ConstView output)>;
  Measures run(const Arena& weights, const Arena& statistics, const OnOutput& on_output = {});

  // The batches can be shared out: share s of n has every n-th batch from number s on. Each batch is counted as run()
  // counts it, and measures() adds in the order of batches, so the bits do not depend on the number of shares.
  struct Share {
    std::vector<Counts> counts;         // of each batch
    std::vector<std::string> left_out;  // a sentence for each sample that could not be read
  };
  int most_shares(int wanted) const;  // 1 where a text's streams run through all batches
  Share count(const Arena& weights, const Arena& statistics, int share, int shares, const OnOutput& on_output = {});
  Measures measures(const std::vector<Share>& shares) const;
  static void tell_left_out(const std::vector<Share>& shares);  // as warnings, once measures() has not thrown

 private:
  Backend& backend_;
  Scored scored_;
  int loader_threads_;
  int64_t batch_;
  EvaluatorMemory memory_;  // with an executor for each number of rows that a batch may have
};

}  // namespace dgc
