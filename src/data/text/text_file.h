#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace dgc {

inline constexpr std::string_view kEndOfLine = "<eos>";
inline constexpr std::string_view kUnknownWord = "<unk>";

// A text of one sentence a line, or one word, and what messages say of it.
struct TextFile {
  std::string path;
  std::string key;                          // of the config, which names it: "data.train"; empty: it is a run's own
  std::string line = "sentence";            // what a line has
  uint64_t most_bytes = uint64_t{1} << 32;  // that it may have, unpacked
};

// What to do about a file that is not what it should be, for a message.
std::string remedy(const TextFile&);

// Calls line() with every line of a text, without its newline. A byte order mark is skipped, and a gzip file is
// unpacked. Throws UserError that names the file, and what to do, when it cannot be read, has no words or is not UTF-8.
void read_lines(const TextFile&, const std::function<void(std::string_view line)>& line);

// Words are what ASCII's white space separates.
void split_words(std::string_view line, const std::function<void(std::string_view word)>& word);

// Calls word() with the words of a text in turn, and with kEndOfLine at the end of every line, even of a blank one, as
// Penn Treebank and WikiText are usually counted. Throws as read_lines() does.
void read_words(const TextFile&, const std::function<void(std::string_view word)>& word);

}  // namespace dgc
