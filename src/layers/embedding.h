#pragma once

#include "layers/layer.h"

namespace dgc {

struct EmbeddingOptions {
  int64_t vocabulary = 0, width = 0;
  Init init = {Init::Kind::normal, 1};  // PyTorch's default
};

// One row of a table for each token.   x i32 [...]   weight [vocabulary, width]   y [..., width]
// Backward leaves the gradient rows of tokens that are not in the batch exactly as they were.
class Embedding final : public Layer {
 public:
  explicit Embedding(const EmbeddingOptions&);  // throws UserError unless both sizes are positive

  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override;
  bool keeps_input() const override { return true; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  EmbeddingOptions options_;
};

}  // namespace dgc
