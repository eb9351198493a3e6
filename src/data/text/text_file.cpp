#include "data/text/text_file.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "data/file.h"
#include "tensor/errors.h"
#include "tensor/home_advice.h"
#include "tensor/utf8.h"

namespace dgc {
namespace {

constexpr std::string_view kSpaces = " \t\r\v\f";

std::vector<uint8_t> content(const TextFile& text) {
  if (!is_there(text.path)) {
    throw_user_error("{}: there is no such file; {}{}{}", text.path, home_advice(text.path), remedy(text),
                     text.key.empty() ? "" : " (see data/README.md)");
  }
  constexpr uint64_t kPiece = uint64_t{1} << 24;
  InputFile file(text.path);
  std::vector<uint8_t> bytes;
  for (uint64_t got = kPiece; got == kPiece;) {
    const size_t before = bytes.size();
    got = file.append(bytes, kPiece);
    if (got > 0 && std::memchr(bytes.data() + before, 0, got) != nullptr) {
      throw_user_error("{}: it has a NUL byte, and so is no text; {}", text.path, remedy(text));
    }
    if (bytes.size() > text.most_bytes) {
      throw_user_error("{}: longer than the {} MiB that a file of one {} a line may have; {}", text.path,
                       text.most_bytes >> 20, text.line,
                       text.key.empty() ? remedy(text) : fmt::format("set {} to a part of it", text.key));
    }
  }
  return bytes;
}

void require_utf8(const TextFile& text, std::string_view all) {
  const std::optional<size_t> at = find_invalid_utf8(all);
  if (!at) return;
  throw_user_error("{}: line {} is not UTF-8 (byte 0x{:02x}); {}", text.path,
                   1 + std::ranges::count(all.substr(0, *at), '\n'), static_cast<uint8_t>(all[*at]),
                   text.key.empty()
                       ? remedy(text)
                       : fmt::format("convert it (iconv -f LATIN1 -t UTF-8) and set {} to the result", text.key));
}

}  // namespace

std::string remedy(const TextFile& text) {
  if (text.key.empty()) return "it is the run's own; put it back as it was";
  return fmt::format("set {} to a text with one {} a line", text.key, text.line);
}

void read_lines(const TextFile& text, const std::function<void(std::string_view)>& line) {
  const std::vector<uint8_t> bytes = content(text);
  std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (all.starts_with(kByteOrderMark)) all.remove_prefix(kByteOrderMark.size());
  if (all.find_first_not_of(" \t\r\v\f\n") == std::string_view::npos) {
    throw_user_error("{}: there are no words in it; {}", text.path, remedy(text));
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
