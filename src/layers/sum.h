#pragma once

#include "layers/layer.h"

namespace dgc {

// y = x[0] + x[1], all of the same shape.
class SumLayer final : public Layer {
 public:
  int inputs() const override { return 2; }
  Shape output_shape(std::span<const Shape> in) const override;
  bool gradient_in_place(int input) const override { return input == 1; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;
};

}  // namespace dgc
