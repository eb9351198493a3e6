#pragma once

#include "layers/layer.h"

namespace dgc {

struct LossArgs {
  Backend& backend;
  ConstView x;       // the network's output
  ConstView labels;  // i32, one for each row of logits; of a CtcLoss [streams, 1 + most]
  std::span<const ConstView> params;
  View scratch;   // of scratch_bytes()
  double* stats;  // device memory [3], overwritten: Backend::softmax_cross_entropy, or ctc_loss
  // For training:
  View dx = {};                          // overwritten; null: no gradients at all
  std::span<const View> dparams = {};    // ADDED to
  float gradient_scale = 1;              // of the sum over rows: 1 / rows for the mean
  const StepControl* control = nullptr;  // where the loss scale is
  ConstView lengths = {};                // RunContext::lengths
};

// What a network's output is measured by: labels come in, statistics and the gradient of the output go out. Like a
// layer it holds its sizes and nothing else. Unlike one it computes its gradients at once, so that it need not keep for
// long what is large.
class Loss {
 public:
  virtual ~Loss() = default;

  // [rows, classes]. Throws UserError when the network's output does not fit.
  virtual Shape logits_shape(const Shape& x) const = 0;
  virtual std::vector<ParamSpec> params() const { return {}; }
  virtual size_t scratch_bytes(const Shape&, DType) const { return 0; }

  virtual void run(const LossArgs&) const = 0;
  // For x of any number of rows.
  virtual void logits(Backend&, ConstView x, std::span<const ConstView> params, View logits) const = 0;
};

}  // namespace dgc
