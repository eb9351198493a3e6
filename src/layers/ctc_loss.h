#pragma once

#include "layers/loss.h"

namespace dgc {

struct CtcLossOptions {
  int64_t classes = 0;  // class 0 is the blank
  int64_t frames_per_step = 1;
};

// The negative log probability that a stream's steps spell its labels, by all alignments together (Graves et al. 2006),
// summed over streams. Labels are i32 [streams, 1 + most]: the number of a stream's labels, then the labels; what
// follows is not read.
//   x [steps, streams, classes]
class CtcLoss final : public Loss {
 public:
  explicit CtcLoss(const CtcLossOptions&);  // throws UserError unless there are two classes or more

  Shape logits_shape(const Shape& x) const override;
  int64_t terms(const Shape& x) const override { return x[1]; }
  int64_t frames_per_step() const override { return options_.frames_per_step; }
  double left_out(const LossStats& stats) const override { return stats.counts[kTooShort]; }
  void run(const LossArgs&) const override;

 private:
  CtcLossOptions options_;
};

}  // namespace dgc
