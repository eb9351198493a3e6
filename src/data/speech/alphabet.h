#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dgc {

inline constexpr int32_t kBlank = 0;  // CTC's label for "no character"

// The apostrophe, the letters and the space: 29 classes with the blank.
inline constexpr const char* kEnglish = "'ABCDEFGHIJKLMNOPQRSTUVWXYZ ";

// Characters and their labels: 1 for the first, and so on. Letters are taken as they are: 'a' is not 'A'.
class Alphabet {
 public:
  // characters: UTF-8. Throws KeyError when it is empty or has a character twice.
  explicit Alphabet(const std::string& characters);

  int64_t classes() const { return static_cast<int64_t>(characters_.size()) + 1; }  // with the blank
  const std::string& character(int32_t label) const;                                // label: 1 ... classes() - 1
  std::optional<int32_t> space() const;  // the space's label; none: no space in the alphabet

  // The labels of the characters of single_spaced(text). Throws BadExample, whose message begins with `name`, for an
  // empty text or a character outside the alphabet.
  std::vector<int32_t> labels(std::string_view text, const std::string& name) const;
  std::string text(std::span<const int32_t> labels) const;

 private:
  std::vector<std::string> characters_;
  std::map<std::string, int32_t, std::less<>> labels_;
};

// The text with single spaces between words and none at the ends.
std::string single_spaced(std::string_view text);

}  // namespace dgc
