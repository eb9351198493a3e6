#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/dgc_args.h"
#include "kernels/wire_codes.h"

// How a selection guesses the next threshold of a tensor, and learns from what it found. The functions are constexpr,
// so that the kernels of every backend use this code. A guess never changes what is selected.
namespace dgc {

// The lowest magnitude worth collecting; 0 where there is no guess, and where the radix selection is cheaper, because
// candidates would be a large part of the tensor. A guess that is too high costs a fallback, and one that is too low a
// longer list. Once training runs, each step lifts about k elements over the threshold, and many more lie just below
// it, so that a percent of the threshold can double the list. Hence the tail is measured, and the threshold, which
// moves almost linearly, is extrapolated.
constexpr float next_threshold(const DgcGuess& guess, const DgcSegment& s) {
  if (guess.k != s.k || 16 * s.k > s.numel || !(guess.threshold > 0) || !wire_finite(guess.threshold)) return 0;
  const float moved = 2 - 1 / guess.growth;
  return guess.threshold * (moved > 0.5f ? moved : 0.5f) * guess.tail;
}

// The longest list worth selecting from has 16 k candidates or 1 / share of the tensor, whichever is less, and
// kSpareCandidates more, which small tensors need.
inline constexpr int64_t kSpareCandidates = 256;
constexpr int64_t candidate_limit(const DgcSegment& s, int64_t share) {
  return (16 * s.k < s.numel / share ? 16 * s.k : s.numel / share) + kSpareCandidates;
}

// How many candidates to aim at: half as many again as k, in case the threshold does not move as expected, and four
// standard deviations of a count of k, which matter when k is small.
constexpr int64_t list_length(int64_t k) {
  return k + k / 2 + static_cast<int64_t>(4 * std::sqrt(static_cast<float>(k)));
}

// The tail with which the guess would have been `lowest`, the smallest of the candidates that were aimed at. A list
// that is shorter than wanted says nothing about what lies below, so the next one reaches twice as far.
constexpr float tail_of(float lowest, float threshold, bool is_short) {
  const float below = 1 - lowest / threshold, twice = 2 * below;
  const float tail = 1 - (!is_short ? below : twice > 0.01f ? twice : 0.01f);
  return tail > 0.1f ? tail : DgcGuess{}.tail;  // the latter also for thresholds of 0, infinity and NaN
}

// `threshold` is the magnitude of the k-th largest element. `hit`: it was selected from a list.
constexpr void remember(DgcGuess& guess, const DgcSegment& s, float threshold, float tail, bool hit) {
  const bool known = guess.k == s.k && guess.threshold > 0;
  const float growth = known ? threshold / guess.threshold : 1;
  guess.growth = growth < 0.25f ? 0.25f : growth > 4 ? 4 : growth;
  guess.threshold = threshold;
  guess.tail = tail;
  guess.k = s.k;
  guess.hit = hit;
}

}  // namespace dgc
