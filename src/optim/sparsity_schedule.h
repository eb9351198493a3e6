#pragma once

#include <vector>

namespace dgc {

// The phases of `sparsity`, one after another, share the first `epochs` epochs evenly. None is sparser than what
// follows the warm-up.
struct SparsityWarmup {
  double epochs = 0;  // 0: no warm-up
  std::vector<double> sparsity = {0.75, 0.9375, 0.984375, 0.996};
  bool operator==(const SparsityWarmup&) const = default;
};

// Sparsity rises in steps while training warms up (Lin et al. 2018, section 3.3); then `final` holds.
struct SparsitySchedule {
  double final = 0.999;
  SparsityWarmup warmup;
  bool operator==(const SparsitySchedule&) const = default;
};

double sparsity_at(const SparsitySchedule& schedule, double epoch);
std::vector<double> sparsities_of(const SparsitySchedule& schedule);  // in turn; neighbours differ

}  // namespace dgc
