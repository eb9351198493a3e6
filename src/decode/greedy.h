#pragma once

#include <cstdint>
#include <vector>

#include "decode/scores.h"

namespace dgc {

// The labels of the likeliest alignment: the best class of each frame, repeats merged, blanks dropped (Graves et al.,
// "Connectionist temporal classification", 2006, section 3.2). Scores may be logits too. The lower class wins a tie.
std::vector<int32_t> greedy_decode(const FrameScores&);

}  // namespace dgc
