#pragma once

#include <string>

// Paths of keys: "optimizer.warmup.epochs" lies in the section "optimizer.warmup"; "" is the config itself.
namespace dgc {

inline std::string join_path(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}
inline std::string section_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return path.substr(0, dot == std::string::npos ? 0 : dot);
}
inline std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }
inline bool is_inside(const std::string& path, const std::string& section) {
  return section.empty() || path.starts_with(section + ".");
}
// The name in `path` right below `section`; "" if `path` is not inside `section`.
inline std::string name_below(const std::string& path, const std::string& section) {
  if (!is_inside(path, section)) return "";
  const size_t start = section.empty() ? 0 : section.size() + 1;
  return path.substr(start, path.find('.', start) - start);
}

}  // namespace dgc
