#pragma once

#include <string>

#include "config/keys.h"

// Conversion between JSON objects and the structs behind a table of keys.
namespace dgc {

void read_object(const Keys& keys, const Json& checked, void* owner);
Json write_object(const Keys& keys, const void* owner);

// The value at the path "a.b.c" within an object; null if there is none.
const Json* find_path(const Json& object, const std::string& path);
void set_path(Json& object, const std::string& path, Json value);

// The value of the key's selector in a checked object, "" if the key has none.
std::string selected_type(const Key& key, const Json& object);

}  // namespace dgc
