#pragma once

#include <string>
#include <vector>

namespace dgc {

// The number of insertions, deletions, substitutions and swaps of neighbours that turn one word into the other (optimal
// string alignment distance).
size_t edit_distance(const std::string& a, const std::string& b);

// The closest candidate, the first of equals; "" where none is close enough to be what was meant.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);
// `; did you mean "NEAREST"?`, or "" without one: the end of a sentence that refuses the word.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace dgc
