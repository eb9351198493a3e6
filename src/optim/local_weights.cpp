#include "optim/local_weights.h"

namespace dgc {

LocalWeights::LocalWeights(Backend& backend, const ParamLayout& params, const ParamLayout& trained,
                           const SgdOptions& options)
    : backend_(backend),
      weights_(backend.device(), params, MemoryUse::weights),
      momentum_step_(backend, trained, options) {}

void LocalWeights::begin(const Arena& shared) {
  backend_.device()->copy(weights_.data(), shared.data(), weights_.bytes());
}

void LocalWeights::step(float* gradient, const StepControl* control) {
  momentum_step_.run(
      {.gradient = gradient, .divisor = 1, .scaled = control, .control = control, .weights = weights_.data()});
}

void LocalWeights::write_moved(const Arena& shared, float* gradient) const {
  const Shape trained{momentum().extent()};
  backend_.subtract({shared.data(), trained}, {weights_.data(), trained}, {gradient, trained});
}

void LocalWeights::settle(const StepControl* control, const float* zeros) const {
  const Shape trained{momentum().extent()};
  backend_.copy_if_skipped(control, {zeros, trained}, {momentum().data(), trained});
}

}  // namespace dgc
