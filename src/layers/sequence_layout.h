#pragma once

#include "layers/sequence.h"

namespace dgc {

// Frames as an image with one channel, for convolutions over time and frequency: height is time. What lies behind each
// stream's end becomes 0, which is what convolutions pad with.
//   x [steps, streams, frequencies]   y [streams, steps, frequencies, 1]
class FramesToImage final : public Layer {
 public:
  explicit FramesToImage(int64_t frames_per_step) : frames_per_step_(frames_per_step) {}

  Shape output_shape(std::span<const Shape> in) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  int64_t frames_per_step_;
};

// Turns an image back into frames: a step has all frequencies of the first channel, then those of the next, as in
// PyTorch.
//   x [streams, steps, frequencies, channels]   y [steps, streams, channels * frequencies]
class ImageToFrames final : public Layer {
 public:
  Shape output_shape(std::span<const Shape> in) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;
};

}  // namespace dgc
