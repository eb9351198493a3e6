#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/text/text_file.h"

namespace dgc {

// The words that a model knows, each by a number. Never without kEndOfLine and kUnknownWord.
class Vocabulary {
 public:
  // `origin` names what the words come from. Throws UserError when one comes twice, or one of those two is missing.
  Vocabulary(std::vector<std::string> words, const std::string& origin);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::string& word(int32_t number) const { return words_[static_cast<size_t>(number)]; }
  bool knows(std::string_view word) const { return numbers_.contains(std::string(word)); }
  int32_t number(std::string_view word) const;  // that of kUnknownWord for one it does not know
  const std::vector<std::string>& words() const { return words_; }
  std::string text() const;  // one word a line: what read_vocabulary() reads

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> numbers_;
};

// The words of a text, the most frequent first and those of one frequency in the order of their bytes. At most `most`
// where it is given, which throws UserError when it is below 2; the others count as kUnknownWord.
Vocabulary build_vocabulary(const TextFile&, std::optional<int64_t> most);

// A file with one word a line. Throws UserError that names it.
Vocabulary read_vocabulary(const TextFile&);

}  // namespace dgc
