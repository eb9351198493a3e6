#pragma once

#include "layers/layer.h"

namespace dgc {

struct DropoutOptions {
  double p = 0.5;  // the share that is dropped
  bool operator==(const DropoutOptions&) const = default;
};

// Inverted dropout: in training an element is 0 with probability p and x / (1 - p) otherwise; in evaluation y = x.
// The mask is a function of (seed, name, sample, element), so it is drawn again in backward instead of being stored.
// That of images is the same at any worker count; that of text is drawn for a stream's place in its micro-batch.
class Dropout final : public Layer {
 public:
  Dropout(const DropoutOptions&, const std::string& name);  // throws UserError unless 0 <= p < 1

  Shape output_shape(std::span<const Shape> in) const override { return in[0]; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  DropoutArgs args(const RunContext&, const Shape& x) const;

  float p_;
  uint64_t stream_;
};

}  // namespace dgc
