#include "layers/conv2d.h"

#include <algorithm>
#include <cmath>

namespace dgc {
namespace {

std::string str(const Extent& extent) {
  const std::string h = std::to_string(extent.h);
  return extent.h == extent.w ? h : h + "x" + std::to_string(extent.w);
}

}  // namespace

Conv2d::Conv2d(const Conv2dOptions& options) : options_(options) {
  const Conv2dOptions& o = options_;
  const auto least = [](const Extent& extent) { return std::min(extent.h, extent.w); };
  if (o.in < 1 || o.out < 1 || least(o.kernel) < 1 || least(o.stride) < 1 || least(o.pad) < 0 || o.groups < 1) {
    throw_user_error("conv2d: sizes must be positive (in {}, out {}, kernel {}, stride {}, pad {}, groups {})", o.in,
                     o.out, str(o.kernel), str(o.stride), str(o.pad), o.groups);
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
    throw_user_error("conv2d: kernel {} with padding {} is larger than its input {}", str(options_.kernel),
                     str(options_.pad), x.str());
  }
  return {a.batch, a.out_h(), a.out_w(), a.out_c};
}

std::vector<ParamSpec> Conv2d::params() const {
  const Conv2dOptions& o = options_;
  const int64_t fan_out = o.out / o.groups * o.kernel.h * o.kernel.w;
  std::vector<ParamSpec> specs = {{"weight",
                                   {o.out, o.in / o.groups, o.kernel.h, o.kernel.w},
                                   {Init::Kind::normal, std::sqrt(2.f / static_cast<float>(fan_out))}}};
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
          .kernel_h = o.kernel.h,
          .kernel_w = o.kernel.w,
          .stride_h = o.stride.h,
          .stride_w = o.stride.w,
          .pad_h = o.pad.h,
          .pad_w = o.pad.w,
          .groups = o.groups};
}

void Conv2d::forward(const ForwardArgs& f) const {
  f.backend.conv2d_forward(args(f.x[0].shape), f.x[0], f.params[0], options_.bias ? f.params[1] : ConstView(), f.y);
}

void Conv2d::backward(const BackwardArgs& b) const {
  const Conv2dArgs a = args(b.x[0].shape);
  b.backend.conv2d_backward_weights(a, b.x[0], b.dy, b.dparams[0], options_.bias ? b.dparams[1] : View());
  if (!b.dx[0]) return;
  if (!b.add_to.empty() && b.add_to[0]) {
    b.backend.conv2d_add_backward_data(a, b.dy, b.params[0], b.dx[0], b.add_to[0]);
  } else {
    b.backend.conv2d_backward_data(a, b.dy, b.params[0], b.dx[0]);
  }
}

}  // namespace dgc
