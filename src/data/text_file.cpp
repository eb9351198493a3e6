#include "data/text_file.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <vector>

#include "data/file.h"
#include "data/utf8.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kSpaces = " \t\r\v\f";

std::vector<uint8_t> content(const TextFile& text) {
  if (std::error_code unused; !std::filesystem::exists(text.path, unused)) {
    throw_user_error("{}: there is no such file; set {} to a text with one sentence a line (see data/README.md)",
                     text.path, text.key);
  }
  InputFile file(text.path);
  std::vector<uint8_t> bytes;
  file.append(bytes, std::numeric_limits<uint64_t>::max());
  return bytes;
}

void require_utf8(const TextFile& text, std::string_view all) {
  const std::optional<size_t> at = find_invalid_utf8(all);
  if (!at) return;
  throw_user_error(
      "{}: line {} is not UTF-8 (byte 0x{:02x}); convert it (iconv -f LATIN1 -t UTF-8) and set {} to the result",
      text.path, 1 + std::ranges::count(all.substr(0, *at), '\n'), static_cast<uint8_t>(all[*at]), text.key);
}

}  // namespace

void read_lines(const TextFile& text, const std::function<void(std::string_view)>& line) {
  const std::vector<uint8_t> bytes = content(text);
  std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (all.starts_with(kByteOrderMark)) all.remove_prefix(kByteOrderMark.size());
  if (all.find_first_not_of(" \t\r\v\f\n") == std::string_view::npos) {
    throw_user_error("{}: there are no words in it; set {} to a text with one sentence a line", text.path, text.key);
  }
  require_utf8(text, all);
  while (!all.empty()) {
    const size_t end = std::min(all.find('\n'), all.size());
    line(all.substr(0, end));
    all.remove_prefix(std::min(end + 1, all.size()));
  }
}

void split_words(std::string_view line, const std::function<void(std::string_view)>& word) {
  for (size_t at = line.find_first_not_of(kSpaces); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kSpaces, at), line.size());
    word(line.substr(at, end - at));
    at = line.find_first_not_of(kSpaces, end);
  }
}

void read_words(const TextFile& text, const std::function<void(std::string_view)>& word) {
  read_lines(text, [&](std::string_view line) {
    split_words(line, word);
    word(kEndOfLine);
  });
}

}  // namespace dgc
