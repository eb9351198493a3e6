#pragma once

#include "layers/layer.h"

namespace dgc {

struct PoolOptions {
  PoolKind kind = PoolKind::max;
  int64_t kernel = 2, stride = 2, pad = 0;
  bool operator==(const PoolOptions&) const = default;
};

// x [batch, h, w, channels] -> y [batch, h', w', channels], sizes rounded down.
class Pool final : public Layer {
 public:
  // Throws UserError unless the sizes are positive, pad is at most half the kernel, as in PyTorch, and the kernel
  // at most PoolArgs::kMostKernel.
  explicit Pool(const PoolOptions&);

  Shape output_shape(std::span<const Shape> in) const override;
  size_t saved_bytes(Backend&, std::span<const Shape> in, DType) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  PoolArgs args(const Shape& x) const;

  PoolOptions options_;
};

// Mean over height and width: x [batch, h, w, channels] -> y [batch, channels]
class GlobalPool final : public Layer {
 public:
  Shape output_shape(std::span<const Shape> in) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;
};

}  // namespace dgc
