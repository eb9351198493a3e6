#include "layers/lrn.h"

#include "layers/image_shape.h"

namespace dgc {

Lrn::Lrn(const LrnOptions& options) : options_(options) {
  if (options.size < 1 || options.size > LrnArgs::kMostSize || options.size % 2 == 0) {
    throw_user_error("lrn: size must be odd and from 1 to {}, not {}", LrnArgs::kMostSize, options.size);
  }
}

Shape Lrn::output_shape(std::span<const Shape> in) const {
  require_image(in[0], "lrn");
  return in[0];
}

LrnArgs Lrn::args(const Shape& x) const {
  return {.batch = x[0],
          .in_h = x[1],
          .in_w = x[2],
          .channels = x[3],
          .size = options_.size,
          .alpha = static_cast<float>(options_.alpha),
          .beta = static_cast<float>(options_.beta),
          .k = static_cast<float>(options_.k)};
}

void Lrn::forward(const ForwardArgs& f) const { f.backend.lrn_forward(args(f.x[0].shape), f.x[0], f.y); }

void Lrn::backward(const BackwardArgs& b) const {
  if (b.dx[0]) b.backend.lrn_backward(args(b.x[0].shape), b.x[0], b.dy, b.dx[0]);
}

}  // namespace dgc
