#pragma once

#include "layers/layer.h"

namespace dgc {

// The parameter-free shortcut between stages of a CIFAR ResNet (He et al. 2015, option A), in the form of ShortcutArgs:
// x [batch, h, w, in] -> y [batch, ceil(h / stride), ceil(w / stride), out]
class PaddedShortcut final : public Layer {
 public:
  PaddedShortcut(int64_t in, int64_t out, int64_t stride);  // throws InternalError where out < in

  Shape output_shape(std::span<const Shape> in) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  ShortcutArgs args(const Shape& x) const { return {x[0], x[1], x[2], in_, out_, stride_}; }

  int64_t in_, out_, stride_;
};

}  // namespace dgc
