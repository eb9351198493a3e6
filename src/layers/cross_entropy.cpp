#include "layers/cross_entropy.h"

namespace dgc {

Shape CrossEntropy::logits_shape(const Shape& x) const {
  if (x.rank() != 2) throw_user_error("cross_entropy expects [batch, classes] but its input is {}", x.str());
  return x;
}

void CrossEntropy::run(const LossArgs& l) const {
  DGC_CHECK(l.labels.numel() == l.x.shape[0] && l.labels.dtype == DType::i32, "a label for each row");
  l.backend.softmax_cross_entropy({.rows = l.x.shape[0],
                                   .classes = l.x.shape[1],
                                   .gradient_scale = l.gradient_scale,
                                   .control = l.control,
                                   .smoothing = l.dx ? static_cast<float>(options_.label_smoothing) : 0},
                                  l.x, l.labels, l.dx, l.stats);
}

}  // namespace dgc
