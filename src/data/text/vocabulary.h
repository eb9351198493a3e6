#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/text/text_file.h"

namespace dgc {

// The words that a model knows, each with a number. kEndOfLine and kUnknownWord are always among them.
class Vocabulary {
 public:
  // `origin` names what the words come from. Throws UserError when a word comes twice, or kEndOfLine or kUnknownWord is
  // missing.
  Vocabulary(const std::vector<std::string>& words, const std::string& origin);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::string& word(int32_t number) const { return words_[static_cast<size_t>(number)]; }
  bool knows(std::string_view word) const { return numbers_.contains(std::string(word)); }
  int32_t number(std::string_view word) const;  // the number of kUnknownWord for an unknown word
  const std::vector<std::string>& words() const { return words_; }
  std::string text() const;  // one word a line: what read_vocabulary() reads

 private:
  friend Vocabulary read_vocabulary(TextFile);
  Vocabulary() = default;
  bool add(std::string_view word);  // false: it is there already
  std::optional<std::string_view> missing_special_word() const;

  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> numbers_;
};

// The vocabulary of a text: the most frequent words first, and words of one frequency in the order of their bytes. If
// `most`, which is at least 2, is given, the vocabulary has at most so many words, and the others count as
// kUnknownWord. Throws as read_words() does, and UserError where the vocabulary takes more than 256 MiB.
Vocabulary build_vocabulary(const TextFile&, std::optional<int64_t> most);

// Reads a file with one word a line, as its messages say too, whatever TextFile::line is. Throws UserError that names
// the file.
Vocabulary read_vocabulary(TextFile);

}  // namespace dgc
