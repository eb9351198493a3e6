#include "tensor/utf8.h"

#include <algorithm>
#include <cstdint>

namespace dgc {
namespace {

// How a character may begin, how long it then is, and what its second byte may be; the others are 0x80 ... 0xBF.
struct Lead {
  uint8_t first, last;
  size_t length;
  uint8_t second_low, second_high;
};
constexpr Lead kLeads[] = {{0x00, 0x7F, 1, 0, 0},       {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
                           {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
                           {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F}};

// 0 where none begins.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  for (const Lead& lead : kLeads) {
    if (byte(0) < lead.first || byte(0) > lead.last) continue;
    if (lead.length == 1) return 1;
    if (text.size() < lead.length || byte(1) < lead.second_low || byte(1) > lead.second_high) return 0;
    for (size_t i = 2; i < lead.length; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
    }
    return lead.length;
  }
  return 0;
}

}  // namespace

std::vector<std::string_view> utf8_characters(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, std::max<size_t>(character_length(text), 1)));
    text.remove_prefix(out.back().size());
  }
  return out;
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

}  // namespace dgc
