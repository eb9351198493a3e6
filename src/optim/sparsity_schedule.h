#pragma once

#include <vector>

namespace dgc {

// Sparsity rises in steps while training warms up (Lin et al. 2018, section 3.3): the phases of `warmup`, one after
// another, share the first `warmup_epochs` epochs evenly; then `final` holds.
struct SparsitySchedule {
  double final = 0.999;
  double warmup_epochs = 0;  // 0: no warm-up
  std::vector<double> warmup = {0.75, 0.9375, 0.984375, 0.996};
};

double sparsity_at(const SparsitySchedule& schedule, double epoch);

}  // namespace dgc
