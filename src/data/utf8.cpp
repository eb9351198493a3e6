#include "data/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace dgc {
namespace {

// Bytes of the character that a byte begins.
size_t length_of(uint8_t first) {
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 1;
}

}  // namespace

std::vector<std::string_view> utf8_characters(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t length = length_of(static_cast<uint8_t>(text.front()));
    const std::string_view rest = text.substr(1, length - 1);
    const bool whole = rest.size() == length - 1 && std::all_of(rest.begin(), rest.end(), [](char c) {
                         return (static_cast<uint8_t>(c) & 0xc0) == 0x80;
                       });
    out.push_back(text.substr(0, whole ? length : 1));
    text.remove_prefix(out.back().size());
  }
  return out;
}

}  // namespace dgc
