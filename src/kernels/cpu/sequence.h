#pragma once

#include <algorithm>

#include "kernels/backend.h"

namespace dgc {

inline int64_t valid_steps(const SequenceArgs& a, int32_t length) {
  const int64_t steps = (std::max<int64_t>(length, 0) + a.frames_per_step - 1) / a.frames_per_step;
  return std::min(steps, a.steps);
}

// Steps of streams are numbered as they lie in memory.
inline int64_t frame_at(const SequenceArgs& a, int64_t stream, int64_t step) {
  return a.order == SequenceOrder::steps_first ? step * a.streams + stream : stream * a.steps + step;
}

inline bool is_valid(const SequenceArgs& a, const int32_t* lengths, int64_t frame) {
  const bool steps_first = a.order == SequenceOrder::steps_first;
  const int64_t stream = steps_first ? frame % a.streams : frame / a.steps;
  const int64_t step = steps_first ? frame / a.streams : frame % a.steps;
  return step < valid_steps(a, lengths[stream]);
}

// Calls valid(first, count) or padding(first, count) for every stretch of neighbouring frames of [from, to) that are,
// or are not, valid.
template <typename Valid, typename Padding>
void for_stretches(const SequenceArgs& a, const int32_t* lengths, int64_t from, int64_t to, const Valid& valid,
                   const Padding& padding) {
  while (from < to) {
    const bool is = is_valid(a, lengths, from);
    int64_t end = from + 1;
    while (end < to && is_valid(a, lengths, end) == is) ++end;
    if (is) {
      valid(from, end - from);
    } else {
      padding(from, end - from);
    }
    from = end;
  }
}

}  // namespace dgc
