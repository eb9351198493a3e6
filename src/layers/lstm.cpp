#include "layers/lstm.h"

#include <cmath>

namespace dgc {

Lstm::Lstm(const LstmOptions& options) : options_(options) {
  if (options.in < 1 || options.hidden < 1) {
    throw_user_error("lstm: sizes must be positive (in {}, hidden {})", options.in, options.hidden);
  }
}

Shape Lstm::output_shape(std::span<const Shape> in) const {
  if (in[0].rank() != 3 || in[0][2] != options_.in) {
    throw_user_error("lstm expects [steps, streams, {}] but its input is {}", options_.in, in[0].str());
  }
  return {in[0][0], in[0][1], options_.hidden};
}

std::vector<ParamSpec> Lstm::params() const {
  const float range = options_.init > 0 ? options_.init : 1.f / std::sqrt(static_cast<float>(options_.hidden));
  const Init init{Init::Kind::uniform, range};
  const std::string end = "_l" + std::to_string(options_.layer);
  const int64_t gates = 4 * options_.hidden;
  return {{"weight_ih" + end, {gates, options_.in}, init},
          {"weight_hh" + end, {gates, options_.hidden}, init},
          {"bias_ih" + end, {gates}, init},
          {"bias_hh" + end, {gates}, init}};
}

std::vector<ParamSpec> Lstm::state(std::span<const Shape> in) const {
  const std::string end = "_l" + std::to_string(options_.layer);
  const Shape shape{in[0][1], options_.hidden};
  return {{"h" + end, shape, {}}, {"c" + end, shape, {}}};
}

size_t Lstm::saved_bytes(Backend& backend, std::span<const Shape> in) const {
  return backend.rnn_saved_bytes(args(in[0]));
}

void Lstm::forward(const ForwardArgs& f) const {
  f.backend.rnn_forward(args(f.x[0].shape), f.x[0], {f.params[0], f.params[1], f.params[2], f.params[3]},
                        {f.state[0], f.state[1]}, f.y, f.saved);
}

void Lstm::backward(const BackwardArgs& b) const {
  b.backend.rnn_backward(args(b.x[0].shape), b.x[0], {b.params[0], b.params[1], b.params[2], b.params[3]}, b.y, b.saved,
                         b.dy, b.dx[0], {b.dparams[0], b.dparams[1], b.dparams[2], b.dparams[3]});
}

}  // namespace dgc
