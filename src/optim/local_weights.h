#pragma once

#include "optim/momentum_step.h"

namespace dgc {

// The weights that a worker has for itself while it takes several steps between two exchanges, and the momentum of
// these steps, which goes on behind an exchange (Local SGD, Stich 2019; DiLoCo, Douillard et al. 2023). All calls queue
// their work.
class LocalWeights {
 public:
  // params: of the weights. trained: what the steps change, the front of `params`.
  LocalWeights(Backend&, const ParamLayout& params, const ParamLayout& trained, const SgdOptions&);

  void begin(const Arena& shared);  // takes the shared weights over
  // A step with the mean gradient of the worker's batch, an arena. Clips it by its own norm.
  void step(float* gradient, const StepControl*);
  // Writes what an exchange takes for the worker's gradient: shared weights - own weights, of what is trained.
  void write_moved(const Arena& shared, float* gradient) const;
  // If the step of the control is skipped, the momentum begins again at 0, as it may not be finite. `zeros`: an arena.
  void settle(const StepControl*, const float* zeros) const;

  const Arena& weights() const { return weights_; }
  const Arena* momentum() const { return momentum_step_.momentum(); }  // null if SgdOptions::momentum is 0

 private:
  Backend& backend_;
  Arena weights_;
  Shape trained_;  // [elements of an arena of what is trained]
  MomentumStep momentum_step_;
};

}  // namespace dgc
