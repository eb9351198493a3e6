#pragma once

#include "layers/layer.h"

namespace dgc {

// y = relu, tanh, sigmoid or another Activation of x, element by element.
class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(Activation kind) : kind_(kind) {}

  Shape output_shape(std::span<const Shape> in) const override { return in[0]; }
  bool keeps_output() const override { return true; }
  bool gradient_in_place(int) const override { return true; }
  void forward(const ForwardArgs& f) const override { f.backend.activation_forward(kind_, f.x[0], f.y); }
  void backward(const BackwardArgs& b) const override {
    if (b.dx[0]) b.backend.activation_backward(kind_, b.y, b.dy, b.dx[0]);
  }

 private:
  Activation kind_;
};

}  // namespace dgc
