#pragma once

#include <functional>
#include <memory>

#include "data/dataset.h"
#include "models/executors.h"
#include "tasks/task.h"
#include "train/batch_input.h"

namespace dgc {

// Runs a whole data set through a network, in order and without augmentation; a text from a state of zero. Everything
// given must outlive it.
class Evaluator {
 public:
  // A data set, and what becomes of what the network makes of it.
  struct Scored {
    const Dataset& data;
    std::unique_ptr<Scorer> scorer;
  };
  // batch: as for Dataset::evaluation_batches().
  Evaluator(const Network&, Backend&, Scored, int64_t batch, int loader_threads, DType activations = DType::f32);

  size_t activation_bytes() const;
  void attach(void* memory);  // of activation_bytes()

  // on_output, if any, sees the network's output for each batch, in device memory: of images the logits [rows,
  // classes].
  Measures run(const Arena& weights, const Arena& statistics, const std::function<void(ConstView)>& on_output = {});
  // Of the last run; before there is one, of the same metrics.
  Measures measures() const { return scored_.scorer->measures(); }

 private:
  Backend& backend_;
  Scored scored_;
  int loader_threads_;
  int64_t batch_;
  Executors
      executors_;  // for a full batch and, where there is one, the smaller last one; of sequences for some lengths
  BatchInput input_;
  ParamLayout state_layout_;
  Arena state_;
  Buffer stats_;
};

}  // namespace dgc
