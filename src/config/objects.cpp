#include "config/objects.h"

#include <utility>

namespace dgc {

const Json* find_path(const Json& object, const std::string& path) {
  const size_t dot = path.find('.');
  if (!object.is_object()) return nullptr;
  const auto found = object.find(path.substr(0, dot));
  if (found == object.end()) return nullptr;
  return dot == std::string::npos ? &*found : find_path(*found, path.substr(dot + 1));
}

void set_path(Json& object, const std::string& path, Json value) {
  Json* at = &object;
  size_t start = 0;
  for (size_t dot = path.find('.'); dot != std::string::npos; start = dot + 1, dot = path.find('.', start)) {
    at = &(*at)[path.substr(start, dot - start)];
  }
  (*at)[path.substr(start)] = std::move(value);
}

std::string selected_type(const Key& key, const Json& object) {
  const Json* value = key.selector.empty() ? nullptr : find_path(object, key.selector);
  return value && value->is_string() ? value->get<std::string>() : "";
}

void read_object(const Keys& keys, const Json& checked, void* owner) {
  for (const Key& key : keys) {
    const Json* value = key.applies_to(selected_type(key, checked)) ? find_path(checked, key.path) : nullptr;
    if (value) key.set(owner, *value);
  }
}

Json write_object(const Keys& keys, const void* owner) {
  Json object = Json::object();
  // A selector comes before the keys that depend on it, so selected_type() finds it in `object`.
  for (const Key& key : keys) {
    if (key.applies_to(selected_type(key, object))) set_path(object, key.path, key.get(owner));
  }
  return object;
}

}  // namespace dgc
