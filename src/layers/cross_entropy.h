#pragma once

#include "layers/loss.h"

namespace dgc {

// Softmax cross entropy where the network's output is the logits.   x [rows, classes]
class CrossEntropy final : public Loss {
 public:
  // smoothing: CrossEntropyArgs::smoothing of a loss with gradients. A loss without them, which measures, has none.
  explicit CrossEntropy(double smoothing = 0) : smoothing_(smoothing) {}

  Shape logits_shape(const Shape& x) const override;
  void run(const LossArgs&) const override;
  void logits(Backend&, ConstView x, std::span<const ConstView> params, View logits) const override;

 private:
  double smoothing_;
};

}  // namespace dgc
