#include "layers/linear.h"

#include <cmath>

namespace dgc {

Linear::Linear(const LinearOptions& options) : options_(options) {
  if (options.in < 1 || options.out < 1) {
    throw_user_error("linear: sizes must be positive (in {}, out {})", options.in, options.out);
  }
}

Shape Linear::output_shape(std::span<const Shape> in) const {
  const Shape& x = in[0];
  const bool rows = x.rank() == 2 || x.rank() == 3;
  if (!rows || x[x.rank() - 1] != options_.in) {
    throw_user_error("linear expects [batch, {}] but its input is {}; put a \"flatten\" or \"global_pool\" before it",
                     options_.in, x.str());
  }
  Shape y = x;
  y[y.rank() - 1] = options_.out;
  return y;
}

std::vector<ParamSpec> Linear::params() const {
  const Init init{Init::Kind::uniform, 1.f / std::sqrt(static_cast<float>(options_.in))};
  std::vector<ParamSpec> specs = {{"weight", {options_.out, options_.in}, init}};
  if (options_.bias) specs.push_back({"bias", {options_.out}, init});
  return specs;
}

void Linear::forward(const ForwardArgs& f) const {
  f.backend.linear_forward({f.x[0].numel() / options_.in, options_.in, options_.out}, f.x[0], f.params[0],
                           options_.bias ? f.params[1] : ConstView(), f.y);
}

void Linear::backward(const BackwardArgs& b) const {
  b.backend.linear_backward({b.dy.numel() / options_.out, options_.in, options_.out}, b.x[0], b.params[0], b.dy,
                            b.dx[0], b.dparams[0], options_.bias ? b.dparams[1] : View());
}

}  // namespace dgc
