#include "optim/local_weights.h"

namespace dgc {

LocalWeights::LocalWeights(Backend& backend, const ParamLayout& params, const ParamLayout& trained,
                           const SgdOptions& options)
    : backend_(backend),
      weights_(backend.device(), params, MemoryUse::weights),
      trained_{trained.extent()},
      momentum_step_(backend, trained, options) {}

void LocalWeights::begin(const Arena& shared) {
  backend_.device()->copy(weights_.data(), shared.data(), weights_.bytes());
}

void LocalWeights::step(float* gradient, const StepControl* control) {
  momentum_step_.run(
      {.gradient = gradient, .divisor = 1, .scaled = control, .control = control, .weights = weights_.data()});
}

void LocalWeights::write_moved(const Arena& shared, float* gradient) const {
  backend_.subtract({shared.data(), trained_}, {weights_.data(), trained_}, {gradient, trained_});
}

void LocalWeights::settle(const StepControl* control, const float* zeros) const {
  if (momentum() == nullptr) return;
  backend_.copy_if_skipped(control, {zeros, trained_}, {momentum()->data(), trained_});
}

}  // namespace dgc
