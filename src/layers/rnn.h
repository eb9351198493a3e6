#pragma once

#include "layers/layer.h"

namespace dgc {

struct RnnOptions {
  RnnCell cell = RnnCell::gru;
  int64_t in = 0, hidden = 0;
  bool biases = true;
  std::string suffix = "_l0";  // the end of all names, as in torch.nn.RNN: "weight_ih_l0_reverse"
  float init = 0;              // the parameters start uniform in +-init; 0: PyTorch's 1 / sqrt(hidden)
  bool carries_state = false;  // from one call to the next; false: each call starts from zeros
};

// One recurrent layer in one direction, with the formulas of RnnArgs and PyTorch's parameters. Gradients go back
// through the steps of one call and end there (truncated back-propagation). The layer ignores lengths: its outputs for
// the padding at a stream's end affect no step before them, and whoever reads y reads valid steps only, or masks the
// others, which makes their gradients 0 (SequenceNorm, SequenceMask).
//   x [steps, streams, in]   weight_ih [gates, in]   weight_hh [gates, hidden]   bias_ih, bias_hh [gates]
//   y [steps, streams, hidden]   state, where it is carried: h and, of an lstm, c [streams, hidden]
class Rnn final : public Layer {
 public:
  explicit Rnn(const RnnOptions&);  // throws UserError unless the sizes are positive

  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override;
  std::vector<ParamSpec> state(std::span<const Shape> in) const override;
  bool keeps_input() const override { return true; }
  bool keeps_output() const override { return true; }
  size_t saved_bytes(Backend&, std::span<const Shape> in, DType activations) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  RnnArgs args(const Shape& x) const;

  RnnOptions options_;
};

}  // namespace dgc
