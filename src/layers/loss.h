#pragma once

#include "layers/layer.h"

namespace dgc {

struct LossArgs {
  Backend& backend;
  ConstView x;       // the network's output
  ConstView labels;  // i32: one for each row of logits; for a CtcLoss [streams, 1 + most]
  std::span<const ConstView> params;
  View scratch;   // device memory of scratch_bytes()
  double* stats;  // device memory [3], overwritten with LossStats
  // For training:
  View dx = {};                          // overwritten; null: no gradients at all
  std::span<const View> dparams = {};    // gradients are ADDED here
  float gradient_scale = 1;              // factor on the gradient of the sum over rows: 1 / rows for the mean
  const StepControl* control = nullptr;  // holds the loss scale
  ConstView lengths = {};                // RunContext::lengths
};

// Indices of LossStats::counts for a cross entropy: rows whose label ranks first, and among the first five.
enum CrossEntropyCounts { kFirst, kTopFive };
// Indices of LossStats::counts for CTC: utterances in the loss, and utterances left out as too short for their
// transcripts.
enum CtcCounts { kInLoss, kTooShort };

// Measures a network's output: labels come in, statistics and the gradient of the output go out. Like a layer, a loss
// holds its sizes and nothing else. Unlike a layer, a loss computes its gradients in the same call, so that large
// intermediate results such as logits are not kept.
class Loss {
 public:
  virtual ~Loss() = default;

  // [rows, classes]. Throws UserError when the network's output does not fit.
  virtual Shape logits_shape(const Shape& x) const = 0;
  // The number of losses that stats sums up, for a network's output x.
  virtual int64_t terms(const Shape& x) const { return logits_shape(x)[0]; }
  // The number of rows of the network's input per step of its output; only sequences have more than one.
  virtual int64_t frames_per_step() const { return 1; }
  // The number of samples that had no part in the loss.
  virtual double left_out(const LossStats&) const { return 0; }
  virtual std::vector<ParamSpec> params() const { return {}; }
  virtual size_t scratch_bytes(const Shape&, DType) const { return 0; }

  virtual void run(const LossArgs&) const = 0;
  // Computes the logits of x, which may have any number of rows: x itself, in the type of `logits`, unless the loss has
  // parameters.
  virtual void logits(Backend& backend, ConstView x, std::span<const ConstView> /*params*/, View logits) const {
    backend.convert(x, logits);
  }
};

}  // namespace dgc
