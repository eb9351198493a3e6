#pragma once

#include <cstdint>
#include <string_view>

namespace dgc {

// What it takes to make the reference into the hypothesis with the fewest edits, and the reference's length. Sums over
// utterances give the rate of a set.
struct EditCount {
  int64_t substitutions = 0, insertions = 0, deletions = 0, reference = 0;

  int64_t errors() const { return substitutions + insertions + deletions; }
  double rate() const;  // errors / reference, may exceed 1; of an empty reference: errors / 1
  EditCount& operator+=(const EditCount&);
  bool operator==(const EditCount&) const = default;
};

// In words, which are what is between spaces: the word error rate.
EditCount word_errors(std::string_view reference, std::string_view hypothesis);
// In UTF-8 characters, also spaces between words: the character error rate.
EditCount character_errors(std::string_view reference, std::string_view hypothesis);

}  // namespace dgc
