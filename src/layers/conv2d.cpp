#include "layers/conv2d.h"

#include <cmath>

namespace dgc {

Conv2d::Conv2d(const Conv2dOptions& options) : options_(options) {
  const Conv2dOptions& o = options_;
  if (o.in < 1 || o.out < 1 || o.kernel < 1 || o.stride < 1 || o.pad < 0 || o.groups < 1) {
    throw_user_error("conv2d: sizes must be positive (in {}, out {}, kernel {}, stride {}, pad {}, groups {})", o.in,
                     o.out, o.kernel, o.stride, o.pad, o.groups);
  }
  if (o.in % o.groups != 0 || o.out % o.groups != 0) {
    throw_user_error("conv2d: groups {} must divide the {} input and {} output channels", o.groups, o.in, o.out);
  }
}

Shape Conv2d::output_shape(std::span<const Shape> in) const {
  const Shape& x = in[0];
  if (x.rank() != 4 || x[3] != options_.in) {
    throw_user_error("conv2d expects [batch, height, width, {}] but its input is {}", options_.in, x.str());
  }
  const Conv2dArgs a = args(x);
  if (a.in_h + 2 * a.pad_h < a.kernel_h || a.in_w + 2 * a.pad_w < a.kernel_w) {
    throw_user_error("conv2d: kernel {} with padding {} is larger than its input {}", options_.kernel, options_.pad,
                     x.str());
  }
  return {a.batch, a.out_h(), a.out_w(), a.out_c};
}

std::vector<ParamSpec> Conv2d::params() const {
  const Conv2dOptions& o = options_;
  const auto fan_out = static_cast<float>(o.out / o.groups * o.kernel * o.kernel);
  std::vector<ParamSpec> specs = {
      {"weight", {o.out, o.in / o.groups, o.kernel, o.kernel}, {Init::Kind::normal, std::sqrt(2.f / fan_out)}}};
  if (o.bias) specs.push_back({"bias", {o.out}, {}});
  return specs;
}

Conv2dArgs Conv2d::args(const Shape& x) const {
  const Conv2dOptions& o = options_;
  return {.batch = x[0],
          .in_h = x[1],
          .in_w = x[2],
          .in_c = o.in,
          .out_c = o.out,
          .kernel_h = o.kernel,
          .kernel_w = o.kernel,
          .stride_h = o.stride,
          .stride_w = o.stride,
          .pad_h = o.pad,
          .pad_w = o.pad,
          .groups = o.groups};
}

void Conv2d::forward(const ForwardArgs& f) const {
  f.backend.conv2d_forward(args(f.x[0].shape), f.x[0], f.params[0], options_.bias ? f.params[1] : ConstView(), f.y);
}

void Conv2d::backward(const BackwardArgs& b) const {
  const Conv2dArgs a = args(b.x[0].shape);
  b.backend.conv2d_backward_weights(a, b.x[0], b.dy, b.dparams[0], options_.bias ? b.dparams[1] : View());
  if (b.dx[0]) b.backend.conv2d_backward_data(a, b.dy, b.params[0], b.dx[0]);
}

}  // namespace dgc
