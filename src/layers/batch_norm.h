#pragma once

#include "layers/layer.h"

namespace dgc {

struct BatchNormOptions {
  int64_t channels = 0;
  bool relu = false;      // y = max(0, ...)
  bool residual = false;  // a second input of the same shape is added before the ReLU
  float eps = 1e-5f;
  float momentum = 0.1f;  // weight of the new batch in the running statistics, as in PyTorch
  bool operator==(const BatchNormOptions&) const = default;
};

// What a layer that normalises each of so many channels learns (weight, bias) and keeps (running_mean, running_var).
std::vector<ParamSpec> norm_params(int64_t channels);
std::vector<ParamSpec> norm_buffers(int64_t channels);

// Batch normalisation over the last axis (Ioffe, Szegedy 2015), with what usually follows it in a residual network
// fused in: the sum with a shortcut and the ReLU.
//   x [batch, ..., channels]   weight, bias, running_mean, running_var [channels]   y as x
class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const BatchNormOptions&);  // throws UserError unless there are channels

  const BatchNormOptions& options() const { return options_; }
  int inputs() const override { return options_.residual ? 2 : 1; }
  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override { return norm_params(options_.channels); }
  std::vector<ParamSpec> buffers() const override { return norm_buffers(options_.channels); }
  bool keeps_input() const override { return true; }
  bool keeps_output() const override { return options_.relu && options_.residual; }
  // Throws UserError where there is but one value of each channel to normalise.
  size_t saved_bytes(Backend&, std::span<const Shape> in, DType) const override;
  // With a shortcut dy, once masked, is the shortcut's gradient. Without one dy is not needed any more.
  bool gradient_in_place(int input) const override { return input == inputs() - 1; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  BatchNormArgs args(const Shape& x) const;

  BatchNormOptions options_;
};

}  // namespace dgc
