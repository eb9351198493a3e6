#include "optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/errors.h"

namespace dgc {
namespace {

double progress(const LrSchedule& s, double epoch) { return std::clamp(epoch / s.epochs, 0.0, 1.0); }

struct ScheduleKind {
  LrSchedule::Type type;
  bool spreads_over_epochs, heeds_losses;
  double (*rate)(const LrSchedule& s, double epoch, const PlateauState& plateau);  // without the warm-up
};

constexpr ScheduleKind kScheduleKinds[] = {
    {LrSchedule::Type::constant, false, false, [](const LrSchedule& s, double, const PlateauState&) { return s.base; }},
    {LrSchedule::Type::step, false, false,
     [](const LrSchedule& s, double epoch, const PlateauState&) {
       return s.base * std::pow(s.factor, std::ranges::count_if(s.milestones, [&](double m) { return epoch >= m; }));
     }},
    {LrSchedule::Type::cosine, true, false,
     [](const LrSchedule& s, double epoch, const PlateauState&) {
       return s.end + (s.base - s.end) * (1 + std::cos(std::numbers::pi * progress(s, epoch))) / 2;
     }},
    {LrSchedule::Type::polynomial, true, false,
     [](const LrSchedule& s, double epoch, const PlateauState&) {
       return s.end + (s.base - s.end) * std::pow(1 - progress(s, epoch), s.power);
     }},
    {LrSchedule::Type::plateau, false, true,
     [](const LrSchedule& s, double, const PlateauState& plateau) {
       return std::max(s.end, s.base * std::pow(s.factor, static_cast<double>(plateau.plateaus)));
     }},
    {LrSchedule::Type::exponential, false, false, [](const LrSchedule& s, double epoch, const PlateauState&) {
       return s.base * std::pow(s.factor, std::floor(epoch));
     }}};

const ScheduleKind& kind_of(LrSchedule::Type type) {
  const auto* const kind = std::ranges::find(kScheduleKinds, type, &ScheduleKind::type);
  DGC_CHECK(kind != std::end(kScheduleKinds), "a learning rate's type has a row");
  return *kind;
}

}  // namespace

bool spreads_over_epochs(LrSchedule::Type type) { return kind_of(type).spreads_over_epochs; }

bool heeds_losses(LrSchedule::Type type) { return kind_of(type).heeds_losses; }

double learning_rate_at(const LrSchedule& schedule, double epoch, const PlateauState& plateau) {
  const double rate = kind_of(schedule.type).rate(schedule, epoch, plateau);
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
