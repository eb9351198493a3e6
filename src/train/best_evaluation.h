#pragma once

#include <cstdint>
#include <limits>

namespace dgc {

// The evaluation of a run with the lowest validation loss so far.
struct BestEvaluation {
  double loss = std::numeric_limits<double>::infinity();
  int64_t step = 0;   // 0: there is none yet
  int64_t since = 0;  // evaluations after it

  // Counts an evaluation. A loss that is NaN is no improvement.
  void add(int64_t at_step, double new_loss) {
    if (new_loss < loss) {
      *this = {new_loss, at_step, 0};
    } else {
      ++since;
    }
  }
};

}  // namespace dgc
