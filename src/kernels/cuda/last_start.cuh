#pragma once

#include "kernels/cuda/model.h"

namespace dgc::cuda {

// The last number whose start is at most `i`, of the numbers below `count`, by a binary search. start_of(number) does
// not fall from one number to the next, and that of number 0 is at most `i`.
template <typename Start>
__device__ inline int last_start(int count, int64_t i, const Start& start_of) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (start_of(middle) <= i) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace dgc::cuda
