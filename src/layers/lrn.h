#pragma once

#include "layers/layer.h"

namespace dgc {

struct LrnOptions {
  int64_t size = 5;
  double alpha = 1e-4, beta = 0.75, k = 1;
  bool operator==(const LrnOptions&) const = default;
};

// Local response normalisation across channels (Krizhevsky et al. 2012, 3.3), in the form of LrnArgs.
class Lrn final : public Layer {
 public:
  explicit Lrn(const LrnOptions&);  // throws UserError unless size is odd and from 1 to LrnArgs::kMostSize

  Shape output_shape(std::span<const Shape> in) const override;
  bool keeps_input() const override { return true; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  LrnArgs args(const Shape& x) const;

  LrnOptions options_;
};

}  // namespace dgc
