#pragma once

#include <string>
#include <string_view>

namespace dgc {

// Returns the text with every control character (of ASCII and of Unicode), every character that turns the direction of
// writing, and every byte that is not UTF-8 written as \xNN, because names and words that come from files must not
// control the terminal that shows them.
std::string printable(std::string_view text);

// Says whether printable() writes this character as \xNN. `character` is an entry of utf8_characters().
bool is_control(std::string_view character);

}  // namespace dgc
