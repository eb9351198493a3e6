#pragma once

#include "layers/loss.h"

namespace dgc {

struct CrossEntropyOptions {
  double label_smoothing = 0;  // CrossEntropyArgs::smoothing of a loss with gradients; one that only measures has none
  bool operator==(const CrossEntropyOptions&) const = default;
};

// Softmax cross entropy where the network's output is the logits.   x [rows, classes]
class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(const CrossEntropyOptions& options = {}) : options_(options) {}

  Shape logits_shape(const Shape& x) const override;
  void run(const LossArgs&) const override;

 private:
  CrossEntropyOptions options_;
};

}  // namespace dgc
