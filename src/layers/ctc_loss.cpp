#include "layers/ctc_loss.h"

namespace dgc {

CtcLoss::CtcLoss(const CtcLossOptions& options) : options_(options) {
  if (options.classes < 2) {
    throw_user_error("ctc_loss: there must be a blank and at least one character, not {} classes", options.classes);
  }
}

Shape CtcLoss::logits_shape(const Shape& x) const {
  if (x.rank() != 3 || x[2] != options_.classes) {
    throw_user_error("the loss expects [steps, streams, {}] but the network's output is {}", options_.classes, x.str());
  }
  return {x[0] * x[1], x[2]};
}

void CtcLoss::run(const LossArgs& l) const {
  const Shape &x = l.x.shape, &labels = l.labels.shape;
  DGC_CHECK(labels.rank() == 2 && labels[0] == x[1] && labels[1] >= 1 && l.labels.dtype == DType::i32,
            "labels that are not [streams, 1 + most] of i32");
  DGC_CHECK(l.lengths && l.lengths.numel() == x[1] && l.lengths.dtype == DType::i32,
            "an i32 length for each stream is missing");
  l.backend.ctc_loss({.steps = x[0],
                      .streams = x[1],
                      .classes = x[2],
                      .most_labels = labels[1] - 1,
                      .frames_per_step = options_.frames_per_step,
                      .gradient_scale = l.gradient_scale,
                      .control = l.control},
                     l.x, l.lengths, l.labels, l.dx, l.stats);
}

}  // namespace dgc
