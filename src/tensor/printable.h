#pragma once

#include <string>
#include <string_view>

namespace dgc {

// The text with every control character (of ASCII and of Unicode) and every byte that is not UTF-8 as \xNN: what comes
// from files, such as names and words, must not command the terminal that shows it.
std::string printable(std::string_view text);

}  // namespace dgc
