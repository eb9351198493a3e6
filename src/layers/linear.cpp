#include "layers/linear.h"

#include <cmath>

namespace dgc {

Linear::Linear(int64_t in, int64_t out, bool bias) : in_(in), out_(out), bias_(bias) {
  if (in < 1 || out < 1) throw_user_error("linear: sizes must be positive (in {}, out {})", in, out);
}

Shape Linear::output_shape(std::span<const Shape> in) const {
  const Shape& x = in[0];
  const bool rows = x.rank() == 2 || x.rank() == 3;
  if (!rows || x[x.rank() - 1] != in_) {
    throw_user_error("linear expects [batch, {}] but its input is {}; put a \"flatten\" or \"global_pool\" before it",
                     in_, x.str());
  }
  Shape y = x;
  y[y.rank() - 1] = out_;
  return y;
}

std::vector<ParamSpec> Linear::params() const {
  const Init init{Init::Kind::uniform, 1.f / std::sqrt(static_cast<float>(in_))};
  std::vector<ParamSpec> specs = {{"weight", {out_, in_}, init}};
  if (bias_) specs.push_back({"bias", {out_}, init});
  return specs;
}

void Linear::forward(const ForwardArgs& f) const {
  f.backend.linear_forward({f.x[0].numel() / in_, in_, out_}, f.x[0], f.params[0], bias_ ? f.params[1] : ConstView(),
                           f.y);
}

void Linear::backward(const BackwardArgs& b) const {
  b.backend.linear_backward({b.dy.numel() / out_, in_, out_}, b.x[0], b.params[0], b.dy, b.dx[0], b.dparams[0],
                            bias_ ? b.dparams[1] : View());
}

}  // namespace dgc
