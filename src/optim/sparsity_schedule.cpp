#include "optim/sparsity_schedule.h"

#include <algorithm>
#include <cstddef>

namespace dgc {

double sparsity_at(const SparsitySchedule& schedule, double epoch) {
  if (epoch >= schedule.warmup.epochs) return schedule.final;
  const double phases = static_cast<double>(schedule.warmup.sparsity.size());
  const auto phase = static_cast<size_t>(epoch * phases / schedule.warmup.epochs);
  if (phase >= schedule.warmup.sparsity.size()) return schedule.final;
  return std::min(schedule.warmup.sparsity[phase], schedule.final);
}

std::vector<double> sparsities_of(const SparsitySchedule& schedule) {
  std::vector<double> all;
  if (schedule.warmup.epochs > 0) all = schedule.warmup.sparsity;
  for (double& phase : all) phase = std::min(phase, schedule.final);
  all.push_back(schedule.final);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace dgc
