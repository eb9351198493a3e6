#pragma once

#include <string>
#include <vector>

namespace dgc::test {

// A word of a shell's command, whatever it has: a folder's name may have spaces.
inline std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

inline std::string command_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + quoted(word);
  return out;
}

}  // namespace dgc::test
