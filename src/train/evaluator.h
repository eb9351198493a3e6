#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "models/executors.h"
#include "run/metrics.h"
#include "tasks/speech_scorer.h"
#include "train/batch_input.h"

namespace dgc {

struct EvalSums {
  double loss = 0;            // summed over the samples
  double top1 = 0, top5 = 0;  // samples whose label ranks first, or among the first five
  // Of speech, where top1 are the utterances in the loss, and top5 those that are too short for their transcripts:
  EditCount words, characters;
};

// Of speech: the mean loss of the utterances that are long enough, and error rates.
void set_speech(EvalMetrics&, const EvalSums&);

// Runs a whole data set through a network, in order and without augmentation; a text from a state of zero. Everything
// given must outlive it.
class Evaluator {
 public:
  // batch: as for Dataset::evaluation_batches().
  Evaluator(const Network&, Backend&, const Dataset&, int64_t batch, int loader_threads,
            DType activations = DType::f32);

  size_t activation_bytes() const;
  void attach(void* memory);  // of activation_bytes()

  // Of speech: instead of the greedy way, which is quick. The texts go to `told`, if any.
  void decode(const DecodingOptions&, SpeechScorer::Told told);

  // on_output, if any, sees the network's output for each batch, in device memory: of images the logits [rows,
  // classes].
  EvalSums run(const Arena& weights, const Arena& statistics, const std::function<void(ConstView)>& on_output = {});

 private:
  Backend& backend_;
  const Dataset& dataset_;
  int loader_threads_;
  int64_t batch_;
  Executors executors_;  // for a full batch and, where there is one, the smaller last one; of speech for some lengths
  std::unique_ptr<BatchInput> input_;
  ParamLayout state_layout_;
  Arena state_;
  Buffer stats_;
  const Speech* speech_;  // null: of another kind
  int64_t frames_per_step_ = 1;
  std::optional<SpeechScorer> scorer_;
};

}  // namespace dgc
