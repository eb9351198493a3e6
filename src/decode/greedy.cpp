#include "decode/greedy.h"

#include <algorithm>

#include "data/speech/alphabet.h"

namespace dgc {

std::vector<int32_t> greedy_decode(const FrameScores& scores) {
  std::vector<int32_t> out;
  int32_t last = kBlank;
  for (int64_t t = 0; t < scores.frames; ++t) {
    const float* row = scores.row(t);
    const auto best = static_cast<int32_t>(std::max_element(row, row + scores.classes) - row);
    if (best != last && best != kBlank) out.push_back(best);
    last = best;
  }
  return out;
}

}  // namespace dgc
