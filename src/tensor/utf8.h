#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

// UTF-8 as Unicode 15 has it (table 3-7): nothing overlong, no surrogates, at most U+10FFFF.
namespace dgc {

// The characters of a text, each with all its bytes. A byte that is not part of a UTF-8 character stands by itself, so
// that putting them together gives the text again, whatever it is.
std::vector<std::string_view> utf8_characters(std::string_view text);

// Where a text stops being UTF-8: the first byte of the first character that is none. Nothing when all of it is.
std::optional<size_t> find_invalid_utf8(std::string_view text);

}  // namespace dgc
