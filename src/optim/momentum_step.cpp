#include "optim/momentum_step.h"

#include <limits>

namespace dgc {

MomentumStep::MomentumStep(Backend& backend, const ParamLayout& layout, const SgdOptions& options)
    : backend_(backend), options_(options), extent_(layout.extent()), clip_(backend.device(), sizeof(Clip)) {
  if (options.momentum != 0) momentum_.emplace(backend.device(), layout, MemoryUse::momentum);
}

void MomentumStep::run(const Args& args) {
  const View gradient{args.gradient, {extent_}};
  const double* square = args.square;
  if (square == nullptr) {
    square = &clip()->square;
    // Without a limit the square does not matter.
    if (options_.clip_norm) backend_.sum_squares(gradient, &clip()->square);
  }
  backend_.clip_scales({.squares = square,
                        .count = 1,
                        .divisor = args.divisor,
                        .limit = options_.clip_norm.value_or(std::numeric_limits<double>::infinity()),
                        .control = args.scaled,
                        .scales = &clip()->scale});
  const View momentum = momentum_ ? View{momentum_->data(), {extent_}} : View();
  backend_.sgd_step({.numel = extent_,
                     .momentum = static_cast<float>(options_.momentum),
                     .weight_decay = static_cast<float>(options_.weight_decay),
                     .nesterov = options_.nesterov,
                     .scale = &clip()->scale,
                     .control = args.control},
                    gradient, momentum, {args.weights, {extent_}});
}

}  // namespace dgc
