#pragma once

#include <vector>

#include "train/steps/step_computation.h"

namespace dgc {

// All workers compute with the weights that they share, and an exchange of their gradients ends every step.
class SynchronousSteps final : public StepComputation {
 public:
  explicit SynchronousSteps(const StepContext&);

  int64_t queue(const NextStep&) override;

 private:
  void compute(Passes);
  void exchange_gradients();

  std::vector<float*> gradients_;   // of the rank's workers
  std::vector<FilterUse> filters_;  // of the shared weights
};

}  // namespace dgc
