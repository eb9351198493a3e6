#pragma once

#include <cstdint>
#include <span>

namespace dgc {

struct WordChoice {
  double temperature = 1;  // 0: always the likeliest word, and the lower number of two alike
  float uniform = 0;       // in [0, 1): which word it becomes
  int32_t never = -1;      // a number that must not come out; -1: none
};

// A word from the softmax of logits / temperature. Sums in double, in the order of the numbers. Throws UserError when a
// logit is not finite.
int32_t choose_word(std::span<const float> logits, const WordChoice&);

}  // namespace dgc
