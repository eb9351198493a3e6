#pragma once

#include <string>

namespace dgc {

// For a message about a path that begins with ~/: how to write it; "" for every other path.
inline std::string home_advice(const std::string& path) {
  if (!path.starts_with("~/")) return "";
  return "a shell puts your home for ~ only where a word begins with it: write \"$HOME/" + path.substr(2) +
         "\", or in a file the whole path; ";
}

// Why no folder that begins with ~/ is made, and what to write; "" for every other path.
inline std::string no_home_folder(const std::string& path) {
  const std::string advice = home_advice(path);
  return advice.empty() ? "" : advice + "write ./" + path + " for a folder called ~";
}

}  // namespace dgc
