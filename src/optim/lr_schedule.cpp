#include "optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/errors.h"

namespace dgc {
namespace {

double without_warmup(const LrSchedule& s, double epoch, const PlateauState& plateau) {
  const double progress = std::clamp(epoch / s.epochs, 0.0, 1.0);
  switch (s.type) {
    case LrSchedule::Type::constant:
      break;
    case LrSchedule::Type::step:
      return s.base * std::pow(s.factor, std::ranges::count_if(s.milestones, [&](double m) { return epoch >= m; }));
    case LrSchedule::Type::cosine:
      return s.end + (s.base - s.end) * (1 + std::cos(std::numbers::pi * progress)) / 2;
    case LrSchedule::Type::polynomial:
      return s.end + (s.base - s.end) * std::pow(1 - progress, s.power);
    case LrSchedule::Type::plateau:
      return std::max(s.end, s.base * std::pow(s.factor, static_cast<double>(plateau.plateaus)));
    case LrSchedule::Type::exponential:
      return s.base * std::pow(s.factor, std::floor(epoch));
  }
  return s.base;
}

}  // namespace

bool spreads_over_epochs(LrSchedule::Type type) {
  switch (type) {
    case LrSchedule::Type::constant:
    case LrSchedule::Type::step:
    case LrSchedule::Type::plateau:
    case LrSchedule::Type::exponential:
      return false;
    case LrSchedule::Type::cosine:
    case LrSchedule::Type::polynomial:
      return true;
  }
  throw InternalError("a schedule that spreads_over_epochs() does not know");
}

bool heeds_losses(LrSchedule::Type type) {
  switch (type) {
    case LrSchedule::Type::constant:
    case LrSchedule::Type::step:
    case LrSchedule::Type::exponential:
    case LrSchedule::Type::cosine:
    case LrSchedule::Type::polynomial:
      return false;
    case LrSchedule::Type::plateau:
      return true;
  }
  throw InternalError("a schedule that heeds_losses() does not know");
}

double learning_rate_at(const LrSchedule& schedule, double epoch, const PlateauState& plateau) {
  const double rate = without_warmup(schedule, epoch, plateau);
  if (epoch >= schedule.warmup_epochs) return rate;
  return schedule.warmup_from + (rate - schedule.warmup_from) * epoch / schedule.warmup_epochs;
}

PlateauState plateau_after(const LrSchedule& schedule, PlateauState state, double loss) {
  if (!heeds_losses(schedule.type)) return state;
  if (loss < state.best * (1 - schedule.threshold)) {
    state.best = loss;
    state.bad = 0;
  } else if (++state.bad > schedule.patience) {
    ++state.plateaus;
    state.bad = 0;
  }
  return state;
}

}  // namespace dgc
