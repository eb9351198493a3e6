#pragma once

#include <cstdint>
#include <vector>

namespace dgc {

// The samples of a training set that are trained on and those that validate, by number, increasing.
struct HeldBack {
  std::vector<int32_t> trained, held;
};

// Draws round(share * samples), at least one, of 0 ... samples - 1 to be held back: a function of the seed. Throws
// UserError when no sample is left to train on.
HeldBack hold_back(int64_t samples, double share, uint64_t seed);

}  // namespace dgc
