#include "json/nearest.h"

#include <algorithm>
#include <cctype>

namespace dgc {
namespace {

std::string in_small_letters(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

}  // namespace

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;  // a longer word is no misspelt key, and the table of distances stays small
  if (word.size() > kLongest) return "";
  std::string best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;  // up to a third of the letters may be wrong
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(in_small_letters(word), in_small_letters(candidate));
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string meant = nearest(word, candidates);
  return meant.empty() ? "" : "; did you mean \"" + meant + "\"?";
}

}  // namespace dgc
