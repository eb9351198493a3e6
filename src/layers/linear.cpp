#include "layers/linear.h"

#include <cmath>

namespace dgc {

Linear::Linear(int64_t in, int64_t out, bool bias) : in_(in), out_(out), bias_(bias) {
  if (in < 1 || out < 1) throw_user_error("linear: sizes must be positive (in {}, out {})", in, out);
}

Shape Linear::output_shape(std::span<const Shape> in) const {
  if (in[0].rank() != 2 || in[0][1] != in_) {
    throw_user_error("linear expects [batch, {}] but its input is {}; put a \"flatten\" or \"global_pool\" before it",
                     in_, in[0].str());
  }
  return {in[0][0], out_};
}

std::vector<ParamSpec> Linear::params() const {
  const Init init{Init::Kind::uniform, 1.f / std::sqrt(static_cast<float>(in_))};
  std::vector<ParamSpec> specs = {{"weight", {out_, in_}, init}};
  if (bias_) specs.push_back({"bias", {out_}, init});
  return specs;
}

void Linear::forward(const ForwardArgs& f) const {
  f.backend.linear_forward({f.x[0].shape[0], in_, out_}, f.x[0], f.params[0], bias_ ? f.params[1] : ConstView(), f.y);
}

void Linear::backward(const BackwardArgs& b) const {
  b.backend.linear_backward({b.dy.shape[0], in_, out_}, b.x[0], b.params[0], b.dy, b.dx[0], b.dparams[0],
                            bias_ ? b.dparams[1] : View());
}

}  // namespace dgc
