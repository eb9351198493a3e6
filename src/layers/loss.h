#pragma once

#include "layers/layer.h"

namespace dgc {

struct LossArgs {
  Backend& backend;
  ConstView x;       // the network's output
  ConstView labels;  // i32, one for each row of logits; of a CtcLoss [streams, 1 + most]
  std::span<const ConstView> params;
  View scratch;   // of scratch_bytes()
  double* stats;  // device memory [3], overwritten with LossStats
  // For training:
  View dx = {};                          // overwritten; null: no gradients at all
  std::span<const View> dparams = {};    // ADDED to
  float gradient_scale = 1;              // of the sum over rows: 1 / rows for the mean
  const StepControl* control = nullptr;  // where the loss scale is
  ConstView lengths = {};                // RunContext::lengths
};

// What LossStats counts, of a cross entropy: rows whose label ranks first, and among the first five.
enum CrossEntropyCounts { kFirst, kTopFive };
// Of CTC: utterances in the loss, and those that it leaves out, as they are too short for their transcripts.
enum CtcCounts { kInLoss, kTooShort };

// What a network's output is measured by: labels come in, statistics and the gradient of the output go out. Like a
// layer it holds its sizes and nothing else. Unlike one it computes its gradients at once, so that it need not keep for
// long what is large.
class Loss {
 public:
  virtual ~Loss() = default;

  // [rows, classes]. Throws UserError when the network's output does not fit.
  virtual Shape logits_shape(const Shape& x) const = 0;
  // Of how many losses stats has the sum, for a network's output x.
  virtual int64_t terms(const Shape& x) const { return logits_shape(x)[0]; }
  // Of how many rows of the network's input each step of its output tells: more than one only of sequences.
  virtual int64_t frames_per_step() const { return 1; }
  // Of stats: what had no part in the loss.
  virtual double left_out(const LossStats&) const { return 0; }
  virtual std::vector<ParamSpec> params() const { return {}; }
  virtual size_t scratch_bytes(const Shape&, DType) const { return 0; }

  virtual void run(const LossArgs&) const = 0;
  // For x of any number of rows.
  virtual void logits(Backend&, ConstView x, std::span<const ConstView> params, View logits) const = 0;
};

}  // namespace dgc
