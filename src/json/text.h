#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dgc {

using Json = nlohmann::ordered_json;

// Parses a text, strictly: nlohmann/json keeps the last of two equal keys silently, here that is a UserError too. The
// sentence names `origin`, and the line and column or the repeated key's path.
Json parse_json(const std::string& text, const std::string& origin);

// Bytes that are not UTF-8 (from a command line, say) become U+FFFD rather than an exception.
std::string json_text(const Json& value, int indent = -1);

// "a string", "an object", ...: what a message calls a value.
std::string json_type_name(const Json& value);

// The whole file. Throws UserError when it cannot be read, or has more than `most` bytes: it may have no end.
std::string read_text_file(const std::string& path, size_t most);

}  // namespace dgc
