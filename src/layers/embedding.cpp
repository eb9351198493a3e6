#include "layers/embedding.h"

namespace dgc {

Embedding::Embedding(const EmbeddingOptions& options) : options_(options) {
  if (options.vocabulary < 1 || options.width < 1) {
    throw_user_error("embedding: sizes must be positive (vocabulary {}, width {})", options.vocabulary, options.width);
  }
}

Shape Embedding::output_shape(std::span<const Shape> in) const {
  std::vector<int64_t> sizes(in[0].begin(), in[0].end());
  sizes.push_back(options_.width);
  return Shape(std::span<const int64_t>(sizes));
}

std::vector<ParamSpec> Embedding::params() const {
  return {{"weight", {options_.vocabulary, options_.width}, options_.init}};
}

void Embedding::forward(const ForwardArgs& f) const {
  f.backend.embedding_forward({f.x[0].numel(), options_.vocabulary, options_.width}, f.x[0], f.params[0], f.y);
}

void Embedding::backward(const BackwardArgs& b) const {
  b.backend.embedding_backward({b.x[0].numel(), options_.vocabulary, options_.width}, b.x[0], b.dy, b.dparams[0]);
}

}  // namespace dgc
