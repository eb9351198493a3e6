#include "optim/sparsity_schedule.h"

#include <cstddef>

namespace dgc {

double sparsity_at(const SparsitySchedule& schedule, double epoch) {
  if (epoch >= schedule.warmup.epochs) return schedule.final;
  const double phases = static_cast<double>(schedule.warmup.sparsity.size());
  const auto phase = static_cast<size_t>(epoch * phases / schedule.warmup.epochs);
  return phase < schedule.warmup.sparsity.size() ? schedule.warmup.sparsity[phase] : schedule.final;
}

}  // namespace dgc
