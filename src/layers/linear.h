#pragma once

#include "layers/layer.h"

namespace dgc {

struct LinearOptions {
  int64_t in = 0, out = 0;
  bool bias = true;
  bool operator==(const LinearOptions&) const = default;
};

// y = x W^T + b.   x [batch, in] or [steps, streams, in]   weight [out, in]   bias [out]   y as x, but [..., out]
class Linear final : public Layer {
 public:
  // Throws UserError unless both sizes are positive.
  explicit Linear(const LinearOptions&);

  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override;  // uniform in +-1/sqrt(in), PyTorch's default
  bool keeps_input() const override { return true; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  LinearOptions options_;
};

}  // namespace dgc
