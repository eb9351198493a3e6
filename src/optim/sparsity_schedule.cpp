#include "optim/sparsity_schedule.h"

#include <cstddef>

namespace dgc {

double sparsity_at(const SparsitySchedule& schedule, double epoch) {
  if (epoch >= schedule.warmup_epochs) return schedule.final;
  const double phases = static_cast<double>(schedule.warmup.size());
  const auto phase = static_cast<size_t>(epoch * phases / schedule.warmup_epochs);
  return phase < schedule.warmup.size() ? schedule.warmup[phase] : schedule.final;
}

}  // namespace dgc
