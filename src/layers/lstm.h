#pragma once

#include "layers/layer.h"

namespace dgc {

struct LstmOptions {
  int64_t in = 0, hidden = 0;
  int64_t layer = 0;  // its number among layers that share a name, as torch.nn.LSTM counts them: "weight_ih_l0"
  float init = 0;     // the parameters start uniform in +-init; 0: PyTorch's 1 / sqrt(hidden)
};

// One layer of an LSTM in one direction (Hochreiter, Schmidhuber 1997, with the forget gate of Gers, Schmidhuber,
// Cummins 2000), with torch.nn.LSTM's parameters: gates in the order i, f, g, o and two biases to each.
//   x [steps, streams, in]   weight_ih [4 hidden, in]   weight_hh [4 hidden, hidden]   bias_ih, bias_hh [4 hidden]
//   y [steps, streams, hidden]   state: h, c [streams, hidden]
// Gradients go back through the steps of one call and end there (truncated back-propagation).
class Lstm final : public Layer {
 public:
  explicit Lstm(const LstmOptions&);  // throws UserError unless the sizes are positive

  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override;
  std::vector<ParamSpec> state(std::span<const Shape> in) const override;
  bool keeps_input() const override { return true; }
  bool keeps_output() const override { return true; }
  size_t saved_bytes(Backend&, std::span<const Shape> in) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  RnnArgs args(const Shape& x) const {
    return {.cell = RnnCell::lstm, .steps = x[0], .batch = x[1], .in = options_.in, .hidden = options_.hidden};
  }

  LstmOptions options_;
};

}  // namespace dgc
