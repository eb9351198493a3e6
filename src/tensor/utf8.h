#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

// UTF-8 as Unicode 15 defines it (table 3-7): it has no overlong forms, no surrogates and nothing beyond U+10FFFF.
namespace dgc {

// Returns the characters of a text, each with all its bytes. A byte that is not part of a UTF-8 character is an entry
// of its own, so that the entries together are the text again, whatever bytes it has.
std::vector<std::string_view> utf8_characters(std::string_view text);

// Returns the position of the first byte that is not part of a UTF-8 character, or nothing when the whole text is
// UTF-8.
std::optional<size_t> find_invalid_utf8(std::string_view text);

}  // namespace dgc
