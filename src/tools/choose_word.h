#pragma once

#include <cstdint>
#include <span>

namespace dgc {

struct WordChoice {
  double temperature = 1;  // 0: always the likeliest word; of equal ones, the lowest number
  float uniform = 0;       // in [0, 1): decides which word is chosen
  int32_t never = -1;      // a number that must not come out; -1: none
};

// Chooses a word from the softmax of logits / temperature. Sums are in double, in the order of the words' numbers.
// Throws UserError when a logit is not finite.
int32_t choose_word(std::span<const float> logits, const WordChoice&);

}  // namespace dgc
