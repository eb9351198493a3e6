#include "data/text_lines.h"

#include <filesystem>

#include "data/file.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr size_t kLongestLine = size_t{1} << 20;  // of a file without lines, all would be read as one

}  // namespace

void for_each_line(const std::string& path, const std::string& fix,
                   const std::function<void(const std::string& line, const std::string& where)>& line) {
  if (!is_there(path)) throw_user_error("{}: there is no such file; {}", path, fix);
  if (std::error_code error; std::filesystem::is_directory(path, error))
    throw_user_error("{}: this is a folder; {}", path, fix);
  InputFile file(path);
  std::string rest(1 << 16, '\0'), text;
  size_t number = 0;
  const auto hand_out = [&](std::string found) {
    if (!found.empty() && found.back() == '\r') found.pop_back();
    line(found, fmt::format("{}: line {}", path, ++number));
  };
  while (const size_t got = file.read(rest.data(), rest.size())) {
    text.append(rest, 0, got);
    size_t start = 0;
    for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
      hand_out(text.substr(start, end - start));
    }
    text.erase(0, start);
    if (text.size() > kLongestLine) {
      throw_user_error("{}: line {} is longer than {} MiB, and so this is no such list; {}", path, number + 1,
                       kLongestLine >> 20, fix);
    }
  }
  if (!text.empty()) hand_out(text);
}

}  // namespace dgc
