#pragma once

#include "layers/batch_norm.h"
#include "layers/sequence.h"

namespace dgc {

struct SequenceNormOptions {
  int64_t channels = 0;
  SequenceOptions sequences = {};
  float eps = 1e-5f;
  float momentum = 0.1f;  // weight of the new batch in the running statistics, as in PyTorch
};

// Batch normalisation over the last axis (Ioffe, Szegedy 2015), over all valid steps of all streams together: the
// sequence-wise normalisation of Laurent et al. 2016 and Amodei et al. 2016. y is 0 behind each stream's end.
//   x [steps, streams, ..., channels], or streams first   weight, bias, running_mean, running_var [channels]   y as x
class SequenceNorm final : public Layer {
 public:
  explicit SequenceNorm(const SequenceNormOptions&);  // throws UserError unless there are channels

  Shape output_shape(std::span<const Shape> in) const override;
  std::vector<ParamSpec> params() const override { return norm_params(options_.channels); }
  std::vector<ParamSpec> buffers() const override { return norm_buffers(options_.channels); }
  bool keeps_input() const override { return true; }
  size_t saved_bytes(Backend&, std::span<const Shape> in, DType) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  SequenceNormArgs args(const Shape& x) const;

  SequenceNormOptions options_;
};

}  // namespace dgc
