#include "optim/momentum_step.h"

#include <limits>

namespace dgc {

MomentumStep::MomentumStep(Backend& backend, const ParamLayout& layout, const SgdOptions& options)
    : backend_(backend),
      options_(options),
      momentum_(backend.device(), layout, MemoryUse::momentum),
      clip_(backend.device(), sizeof(Clip)) {}

void MomentumStep::run(const Args& args) {
  const int64_t extent = momentum_.extent();
  const View gradient{args.gradient, {extent}};
  // Without a limit the square does not matter.
  if (options_.clip_norm) backend_.sum_squares(gradient, &clip()->square);
  backend_.clip_scales({.squares = &clip()->square,
                        .count = 1,
                        .divisor = args.divisor,
                        .limit = options_.clip_norm.value_or(std::numeric_limits<double>::infinity()),
                        .control = args.scaled,
                        .scales = &clip()->scale});
  backend_.sgd_step({.numel = extent,
                     .momentum = static_cast<float>(options_.momentum),
                     .weight_decay = static_cast<float>(options_.weight_decay),
                     .nesterov = options_.nesterov,
                     .scale = &clip()->scale,
                     .control = args.control},
                    gradient, {momentum_.data(), {extent}}, {args.weights, {extent}});
}

}  // namespace dgc
