#include "tensor/printable.h"

#include <fmt/core.h>

#include "tensor/utf8.h"

namespace dgc {

// U+0000 to U+001F, U+007F to U+009F, what turns the direction of writing (U+202A to U+202E, U+2066 to U+2069), and a
// byte that is no UTF-8.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first >= 0x7f;
  if (character.size() == 2) return character >= "\xc2\x80" && character <= "\xc2\x9f";
  return (character >= "\xe2\x80\xaa" && character <= "\xe2\x80\xae") ||
         (character >= "\xe2\x81\xa6" && character <= "\xe2\x81\xa9");
}

std::string printable(std::string_view text) {
  std::string out;
  for (const std::string_view character : utf8_characters(text)) {
    if (!is_control(character)) {
      out += character;
      continue;
    }
    for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace dgc
