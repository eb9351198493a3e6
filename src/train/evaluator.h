#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "models/executor.h"
#include "train/batch_input.h"

namespace dgc {

struct EvalSums {
  double loss = 0;            // summed over the samples
  double top1 = 0, top5 = 0;  // samples whose label ranks first, or among the first five
};

// Runs a whole data set through a network, in order and without augmentation; a text from a state of zero. Everything
// given must outlive it.
class Evaluator {
 public:
  // rows: of a batch.
  Evaluator(const Network&, Backend&, const Dataset&, int64_t rows, int loader_threads, DType activations = DType::f32);

  size_t activation_bytes() const;
  void attach(void* memory);  // of activation_bytes()

  // on_output, if any, sees the network's output for each batch, in device memory: of images the logits [rows,
  // classes].
  EvalSums run(const Arena& weights, const Arena& statistics, const std::function<void(ConstView)>& on_output = {});

 private:
  Backend& backend_;
  const Dataset& dataset_;
  int loader_threads_;
  std::vector<std::unique_ptr<Executor>>
      executors_;  // for the full batch and, where there is one, the smaller last one
  std::unique_ptr<BatchInput> input_;
  ParamLayout state_layout_;
  Arena state_;
  Buffer stats_;
};

}  // namespace dgc
