#include "layers/lookahead.h"

#include <cmath>

namespace dgc {

Lookahead::Lookahead(int64_t channels, int64_t context) : channels_(channels), context_(context) {
  if (channels < 1 || context < 1) {
    throw_user_error("lookahead: sizes must be positive (channels {}, context {})", channels, context);
  }
}

Shape Lookahead::output_shape(std::span<const Shape> in) const {
  if (in[0].rank() != 3 || in[0][2] != channels_) {
    throw_user_error("lookahead expects [steps, streams, {}] but its input is {}", channels_, in[0].str());
  }
  return in[0];
}

std::vector<ParamSpec> Lookahead::params() const {
  const float range = 1.f / std::sqrt(static_cast<float>(context_));
  return {{"weight", {channels_, 1, context_}, {Init::Kind::uniform, range}}};
}

void Lookahead::forward(const ForwardArgs& f) const {
  f.backend.lookahead_forward(args(f.x[0].shape), f.x[0], f.params[0], f.y);
}

void Lookahead::backward(const BackwardArgs& b) const {
  b.backend.lookahead_backward(args(b.x[0].shape), b.x[0], b.params[0], b.dy, b.dx[0], b.dparams[0]);
}

}  // namespace dgc
