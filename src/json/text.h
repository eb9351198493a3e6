#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace dgc {

using Json = nlohmann::ordered_json;

// Parses a text strictly. Throws UserError for a text that is not JSON, and for a repeated key, of which nlohmann/json
// silently keeps the last. The message names `origin`, and the line and column or the repeated key's path.
Json parse_json(const std::string& text, const std::string& origin);
// Works as parse_json() for one line of a file: `where` names the file and the line, and a message adds the column.
Json parse_json_line(const std::string& line, const std::string& where);

// Bytes that are not UTF-8 (from a command line, say) become U+FFFD rather than an exception.
std::string json_text(const Json& value, int indent = -1);

// The same JSON for standard output: what printable() (tensor/printable.h) writes in numbers is written as \uNNNN, but
// for the ends of lines. Files are written without it, because the bytes of some are compared.
std::string printable_json(const std::string& json);

// The value of a key of `object`. Throws UserError, which begins with `where`, when there is none.
const Json& json_member(const Json& object, const char* key, const std::string& where);
// Works as json_member() for a key whose value has to be a string.
std::string json_string(const Json& object, const char* key, const std::string& where);
// Throws UserError, which begins with `where`, unless the value is an object.
void require_object(const Json& value, const std::string& where);

// "a string", "an object", ...: what a message calls a value.
std::string json_type_name(const Json& value);

// Throws UserError that says why the file cannot be opened.
std::ifstream open_to_read(const std::string& path);

// Reads a whole file. Throws UserError when it cannot be read, or has more than `most` bytes: a pipe or a device may
// have no end.
std::string read_text_file(const std::string& path, size_t most);

}  // namespace dgc
