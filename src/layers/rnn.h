#pragma once

#include "layers/layer.h"

namespace dgc {

struct RnnOptions {
  RnnCell cell = RnnCell::gru;
  int64_t in = 0, hidden = 0;
  bool biases = true;
  std::string suffix = "_l0";  // of the parameters' names, as torch.nn.RNN gives them: "_l0_reverse"
};

// One recurrent layer in one direction over whole sequences, from a state of zeros on, with the formulas of RnnArgs and
// PyTorch's parameters. It does not look at lengths: what it makes of the padding at a stream's end changes nothing
// before it, and whoever reads y masks it, which makes the gradients there 0 too (SequenceMask, JoinDirections).
//   x [steps, streams, in]   weight_ih [gates, in]   weight_hh [gates, hidden]   bias_ih, bias_hh [gates]
//   y [steps, streams, hidden]
class Rnn final : public Layer {
 public:
  explicit Rnn(const RnnOptions&);  // throws UserError unless the sizes are positive

  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override;  // uniform in +-1 / sqrt(hidden), as PyTorch's
  bool keeps_input() const override { return true; }
  bool keeps_output() const override { return true; }
  size_t saved_bytes(Backend&, std::span<const Shape> in) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  RnnArgs args(const Shape& x) const;

  RnnOptions options_;
};

}  // namespace dgc
