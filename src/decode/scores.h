#pragma once

#include <cstdint>

namespace dgc {

// What a network says of one utterance: a row of `classes` scores for each frame, the blank's (kBlank) first. They are
// natural-log probabilities; greedy decoding takes logits too. Rows lie `stride` values apart: in a batch [T, B, C],
// stride = B * C, and utterance b has values = all + b * C.
struct FrameScores {
  const float* values = nullptr;
  int64_t frames = 0, classes = 0, stride = 0;

  const float* row(int64_t t) const { return values + t * stride; }
};

}  // namespace dgc
