#include "layers/flatten.h"

#include "layers/image_shape.h"

namespace dgc {

Shape Flatten::output_shape(std::span<const Shape> in) const {
  require_image(in[0], "flatten");
  return {in[0][0], in[0][1] * in[0][2] * in[0][3]};
}

void Flatten::forward(const ForwardArgs& f) const {
  const Shape& x = f.x[0].shape;
  f.backend.transpose({.outer = x[0], .inner = 1, .rows = x[1] * x[2], .columns = x[3]}, f.x[0], f.y);
}

void Flatten::backward(const BackwardArgs& b) const {
  const Shape& x = b.x[0].shape;
  if (b.dx[0]) b.backend.transpose({.outer = x[0], .inner = 1, .rows = x[3], .columns = x[1] * x[2]}, b.dy, b.dx[0]);
}

}  // namespace dgc
