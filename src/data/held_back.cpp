#include "data/held_back.h"

#include <algorithm>
#include <cmath>

#include "tensor/errors.h"
#include "tensor/rng.h"

namespace dgc {

HeldBack hold_back(int64_t samples, double share, uint64_t seed) {
  const int64_t held = std::max<int64_t>(1, std::llround(share * static_cast<double>(samples)));
  if (held >= samples) {
    throw_user_error("data.validation_split: {} holds back {} of {} training samples, and leaves none to train on",
                     share, held, samples);
  }
  const std::vector<int32_t> drawn = permutation(samples, seed, rng_stream("validation", 0));
  HeldBack parts{{drawn.begin() + held, drawn.end()}, {drawn.begin(), drawn.begin() + held}};
  std::ranges::sort(parts.trained);
  std::ranges::sort(parts.held);
  return parts;
}

}  // namespace dgc
