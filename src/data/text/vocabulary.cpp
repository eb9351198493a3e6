#include "data/text/vocabulary.h"

#include <algorithm>

#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 28;  // of a vocabulary's text

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string>& words, const std::string& origin) {
  for (const std::string& word : words) {
    if (!add(word)) throw_user_error("{}: the word \"{}\" comes twice", origin, word);
  }
  if (const auto missing = missing_special_word()) throw_user_error("{}: the word {} is missing", origin, *missing);
}

bool Vocabulary::add(std::string_view word) {
  if (!numbers_.try_emplace(std::string(word), static_cast<int32_t>(words_.size())).second) return false;
  words_.emplace_back(word);
  return true;
}

std::optional<std::string_view> Vocabulary::missing_special_word() const {
  for (const std::string_view needed : {kEndOfLine, kUnknownWord}) {
    if (!knows(needed)) return needed;
  }
  return std::nullopt;
}

int32_t Vocabulary::number(std::string_view word) const {
  const auto found = numbers_.find(std::string(word));
  return found != numbers_.end() ? found->second : numbers_.at(std::string(kUnknownWord));
}

std::string Vocabulary::text() const {
  std::string all;
  for (const std::string& word : words_) all += word + "\n";
  return all;
}

Vocabulary build_vocabulary(const TextFile& text, std::optional<int64_t> most) {
  std::unordered_map<std::string, int64_t> counts;
  read_words(text, [&](std::string_view word) { ++counts[std::string(word)]; });
  counts.try_emplace(std::string(kUnknownWord), 0);
  std::vector<std::string> words;
  for (const auto& [word, count] : counts) words.push_back(word);
  const auto before = [&](const std::string& a, const std::string& b) {
    const int64_t in_a = counts.at(a), in_b = counts.at(b);
    return in_a != in_b ? in_a > in_b : a < b;
  };
  std::ranges::sort(words, before);
  if (most && *most < static_cast<int64_t>(words.size())) {
    // kEndOfLine and kUnknownWord must stay. All words that are cut off count as kUnknownWord, which may then be
    // frequent.
    const auto kept = [](const std::string& word) { return word == kEndOfLine || word == kUnknownWord; };
    std::stable_partition(words.begin(), words.end(), kept);
    words.resize(static_cast<size_t>(*most));
    std::ranges::sort(words, before);
  }
  uint64_t bytes = 0;
  for (const std::string& word : words) bytes += word.size() + 1;
  if (bytes > kMostBytes) {
    throw_user_error(
        "{}: its {} words take more than the {} MiB that a vocabulary may have; set data.vocabulary_size to fewer",
        text.path, words.size(), kMostBytes >> 20);
  }
  return {words, text.path};
}

// Words that come twice are refused while the file is read, so that a small archive of one word a million times does
// not take the memory of a million words.
Vocabulary read_vocabulary(TextFile file) {
  file.line = "word";
  file.most_bytes = kMostBytes;
  const auto refuse = [&](const std::string& what, const std::string& fix) {
    throw_user_error("{}: {}; {}", file.path, what, file.key.empty() ? remedy(file) : fix);
  };
  Vocabulary vocabulary;
  int64_t lines = 0;
  read_lines(file, [&](std::string_view line) {
    ++lines;
    split_words(line, [&](std::string_view word) {
      if (!vocabulary.add(word)) {
        refuse(fmt::format("the word \"{}\" comes twice", word), "a vocabulary has each word once");
      }
    });
    if (vocabulary.size() != lines)
      refuse(fmt::format("line {} is not one word", lines), "a vocabulary has one a line");
  });
  if (const auto missing = vocabulary.missing_special_word()) {
    refuse(fmt::format("the word {} is missing", *missing), "add a line with it");
  }
  return vocabulary;
}

}  // namespace dgc
