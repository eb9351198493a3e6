#pragma once

#include "train/step_computation.h"

namespace dgc {

// All workers compute with the weights that they share, and an exchange of their gradients ends every step.
class SynchronousSteps final : public StepComputation {
 public:
  using StepComputation::StepComputation;

  int64_t queue(const NextStep&) override;

 private:
  void compute_and_exchange();
};

}  // namespace dgc
