#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/check.h"

namespace dgc {

// Throws UserError unless the value is of the key's kind and within its range. `shown` is the value's path in messages.
void check_value(const Key& key, const Json& value, const std::string& shown, const Origin& origin);

std::string_view kind_name(Kind kind);                                // "number"
std::string expected_words(const Key& key);                           // "it must be a number"
std::string range_words(const Key& key);                              // "at least 1 and less than 5"
std::string quoted(std::vector<std::string> words, char mark = '"');  // "a", "b"

}  // namespace dgc
