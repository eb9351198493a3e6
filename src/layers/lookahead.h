#pragma once

#include "layers/layer.h"

namespace dgc {

// The future context of a one-directional network (Amodei et al. 2016): each channel of a step becomes a weighted sum
// of itself and the next context - 1 steps. The layer equals PyTorch's Conv1d with a group for each channel and padding
// at the end.
//   x [steps, streams, channels], 0 behind each stream's end   weight [channels, 1, context]   y as x
class Lookahead final : public Layer {
 public:
  Lookahead(int64_t channels, int64_t context);  // throws UserError unless both are positive

  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override;  // uniform in +-1 / sqrt(context), as in PyTorch
  bool keeps_input() const override { return true; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  LookaheadArgs args(const Shape& x) const { return {x[0], x[1], channels_, context_}; }

  int64_t channels_, context_;
};

}  // namespace dgc
