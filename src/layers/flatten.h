#pragma once

#include "layers/layer.h"

namespace dgc {

// x [batch, h, w, channels] -> y [batch, channels * h * w], channels outermost: the order PyTorch's linear layers
// expect.
class Flatten final : public Layer {
 public:
  Shape output_shape(std::span<const Shape> in) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;
};

}  // namespace dgc
