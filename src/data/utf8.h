#pragma once

#include <string_view>
#include <vector>

namespace dgc {

// The characters of a text, each with all its bytes. A byte that is not part of a UTF-8 character stands by itself, so
// that putting them together gives the text again, whatever it is.
std::vector<std::string_view> utf8_characters(std::string_view text);

}  // namespace dgc
