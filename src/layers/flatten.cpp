#include "layers/flatten.h"

#include "layers/image_shape.h"

namespace dgc {
namespace {
FlattenArgs args(const Shape& x) { return {x[0], x[1] * x[2], x[3]}; }
}  // namespace

Shape Flatten::output_shape(std::span<const Shape> in) const {
  require_image(in[0], "flatten");
  return {in[0][0], in[0][1] * in[0][2] * in[0][3]};
}

void Flatten::forward(const ForwardArgs& f) const { f.backend.flatten_forward(args(f.x[0].shape), f.x[0], f.y); }

void Flatten::backward(const BackwardArgs& b) const {
  if (b.dx[0]) b.backend.flatten_backward(args(b.x[0].shape), b.dy, b.dx[0]);
}

}  // namespace dgc
