#pragma once

#include <cstdint>
#include <string_view>

namespace dgc {

// The fewest edits that make the reference into the hypothesis, and the reference's length. Sums over utterances give
// the rate of a set.
struct EditCount {
  int64_t substitutions = 0, insertions = 0, deletions = 0, reference = 0;

  int64_t errors() const { return substitutions + insertions + deletions; }
  EditCount& operator+=(const EditCount&);
  bool operator==(const EditCount&) const = default;
};

double error_rate(double errors, double reference);  // errors / max(reference, 1); may exceed 1

// Counts edits of words, which spaces separate, for the word error rate.
EditCount word_errors(std::string_view reference, std::string_view hypothesis);
// Counts edits of UTF-8 characters, spaces between words included, for the character error rate.
EditCount character_errors(std::string_view reference, std::string_view hypothesis);

}  // namespace dgc
