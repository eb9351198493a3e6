#pragma once

#include <sys/wait.h>

#include <catch.hpp>
#include <cstdio>
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

struct ShellRun {
  int code;
  std::string output;
};

inline ShellRun run_in_shell(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  ShellRun out{};
  char part[4096];
  for (size_t n; (n = std::fread(part, 1, sizeof(part), pipe)) > 0;) out.output.append(part, n);
  out.code = WEXITSTATUS(pclose(pipe));
  return out;
}

}  // namespace dgc::test
