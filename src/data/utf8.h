#pragma once

#include <optional>
#include <string_view>

namespace dgc {

// Where a text stops being UTF-8 (Unicode 15, table 3-7: nothing overlong, no surrogates, at most U+10FFFF): the first
// byte of the first character that is none. Nothing when all of it is.
std::optional<size_t> find_invalid_utf8(std::string_view text);

}  // namespace dgc
