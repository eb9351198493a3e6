#include "layers/rnn.h"

#include <cmath>

namespace dgc {

Rnn::Rnn(const RnnOptions& options) : options_(options) {
  if (options.in < 1 || options.hidden < 1) {
    throw_user_error("rnn: sizes must be positive (in {}, hidden {})", options.in, options.hidden);
  }
}

Shape Rnn::output_shape(std::span<const Shape> in) const {
  if (in[0].rank() != 3 || in[0][2] != options_.in) {
    throw_user_error("rnn expects [steps, streams, {}] but its input is {}", options_.in, in[0].str());
  }
  return {in[0][0], in[0][1], options_.hidden};
}

RnnArgs Rnn::args(const Shape& x) const {
  return {.cell = options_.cell,
          .steps = x[0],
          .batch = x[1],
          .in = options_.in,
          .hidden = options_.hidden,
          .biases = options_.biases};
}

std::vector<ParamSpec> Rnn::params() const {
  const float range = options_.init > 0 ? options_.init : 1.f / std::sqrt(static_cast<float>(options_.hidden));
  const Init init{Init::Kind::uniform, range};
  const int64_t gates = args({1, 1, options_.in}).gates();
  const std::string& end = options_.suffix;
  std::vector<ParamSpec> specs = {{"weight_ih" + end, {gates, options_.in}, init},
                                  {"weight_hh" + end, {gates, options_.hidden}, init}};
  if (!options_.biases) return specs;
  specs.push_back({"bias_ih" + end, {gates}, init});
  specs.push_back({"bias_hh" + end, {gates}, init});
  return specs;
}

std::vector<ParamSpec> Rnn::state(std::span<const Shape> in) const {
  if (!options_.carries_state) return {};
  const Shape shape{in[0][1], options_.hidden};
  std::vector<ParamSpec> specs = {{"h" + options_.suffix, shape, {}}};
  if (options_.cell == RnnCell::lstm) specs.push_back({"c" + options_.suffix, shape, {}});
  return specs;
}

size_t Rnn::saved_bytes(Backend& backend, std::span<const Shape> in, DType activations) const {
  return backend.rnn_saved_bytes(args(in[0]), activations);
}

void Rnn::forward(const ForwardArgs& f) const {
  RnnWeights w{f.params[0], f.params[1], {}, {}};
  if (options_.biases) w.b_ih = f.params[2], w.b_hh = f.params[3];
  RnnState state;
  if (options_.carries_state) state = {f.state[0], options_.cell == RnnCell::lstm ? f.state[1] : View()};
  f.backend.rnn_forward(args(f.x[0].shape), f.x[0], w, state, f.y, f.saved);
}

void Rnn::backward(const BackwardArgs& b) const {
  RnnWeights w{b.params[0], b.params[1], {}, {}};
  RnnGradients d{b.dparams[0], b.dparams[1], {}, {}};
  if (options_.biases) {
    w.b_ih = b.params[2], w.b_hh = b.params[3];
    d.b_ih = b.dparams[2], d.b_hh = b.dparams[3];
  }
  b.backend.rnn_backward(args(b.x[0].shape), b.x[0], w, b.y, b.saved, b.dy, b.dx[0], d);
}

}  // namespace dgc
