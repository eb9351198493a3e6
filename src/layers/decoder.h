#pragma once

#include "layers/loss.h"

namespace dgc {

struct DecoderOptions {
  int64_t in = 0, classes = 0;
  Init init = {};    // start of the weight; the bias starts at 0
  int64_t rows = 0;  // rows of logits in memory at a time; 0: chosen by the number of classes
};

// A linear layer to many classes and softmax cross entropy in one. Logits exist for some rows at a time only: product,
// loss and all gradients are done with before the next rows take their memory.
//   x [..., in]   weight [classes, in]   bias [classes]
class Decoder final : public Loss {
 public:
  explicit Decoder(const DecoderOptions&);  // throws UserError unless the sizes are positive

  Shape logits_shape(const Shape& x) const override;
  std::vector<ParamSpec> params() const override;
  size_t scratch_bytes(const Shape& x, DType) const override;
  void run(const LossArgs&) const override;
  void logits(Backend&, ConstView x, std::span<const ConstView> params, View logits) const override;

 private:
  int64_t rows_at_once(int64_t rows) const;

  DecoderOptions options_;
};

}  // namespace dgc
