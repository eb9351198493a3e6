#pragma once

#include "layers/layer.h"

namespace dgc {

// A size along height and along width; one number stands for both.
struct Extent {
  int64_t h, w;
  Extent(int64_t both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor): most are square
  Extent(int64_t height, int64_t width) : h(height), w(width) {}
  bool operator==(const Extent&) const = default;
};

struct Conv2dOptions {
  int64_t in = 0, out = 0;
  Extent kernel = 1, stride = 1, pad = 0;
  int64_t groups = 1;
  bool bias = true;
  bool operator==(const Conv2dOptions&) const = default;
};

// Cross-correlation, which deep learning calls convolution.
// x [batch, h, w, in]   weight [out, in / groups, kernel.h, kernel.w]   bias [out]   y [batch, h', w', out]
class Conv2d final : public Layer {
 public:
  // Throws UserError when a size is not positive, pad is negative, or groups does not divide in and out.
  explicit Conv2d(const Conv2dOptions&);

  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override;  // He et al. 2015's normal initialisation over fan-out; bias 0
  std::optional<FilterArgs> filter() const override { return args({0, 0, 0, options_.in}).filter(); }
  bool keeps_input() const override { return true; }
  bool adds_gradient() const override { return true; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  Conv2dArgs args(const Shape& x) const;

  Conv2dOptions options_;
};

}  // namespace dgc
