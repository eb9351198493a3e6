#include "layers/sequence_layout.h"

#include "layers/image_shape.h"

namespace dgc {

Shape FramesToImage::output_shape(std::span<const Shape> in) const {
  if (in[0].rank() != 3) {
    throw_user_error("frames_to_image expects [steps, streams, frequencies] but its input is {}", in[0].str());
  }
  return {in[0][1], in[0][0], in[0][2], 1};
}

void FramesToImage::forward(const ForwardArgs& f) const {
  const Shape& x = f.x[0].shape;
  f.backend.transpose({.outer = x[0], .inner = x[1], .rows = 1, .columns = x[2]}, f.x[0], f.y);
  mask_sequences(f.backend, f.run, {frames_per_step_, SequenceOrder::streams_first}, f.y, f.y);
}

void FramesToImage::backward(const BackwardArgs& b) const {
  if (!b.dx[0]) return;
  const Shape& y = b.dy.shape;
  b.backend.transpose({.outer = y[0], .inner = y[1], .rows = 1, .columns = y[2]}, b.dy, b.dx[0]);
  mask_sequences(b.backend, b.run, {frames_per_step_, SequenceOrder::steps_first}, b.dx[0], b.dx[0]);
}

Shape ImageToFrames::output_shape(std::span<const Shape> in) const {
  require_image(in[0], "image_to_frames");
  return {in[0][1], in[0][0], in[0][2] * in[0][3]};
}

void ImageToFrames::forward(const ForwardArgs& f) const {
  const Shape& x = f.x[0].shape;
  f.backend.transpose({.outer = x[0], .inner = x[1], .rows = x[2], .columns = x[3]}, f.x[0], f.y);
}

void ImageToFrames::backward(const BackwardArgs& b) const {
  const Shape& x = b.x[0].shape;
  if (b.dx[0]) b.backend.transpose({.outer = x[1], .inner = x[0], .rows = x[3], .columns = x[2]}, b.dy, b.dx[0]);
}

}  // namespace dgc
