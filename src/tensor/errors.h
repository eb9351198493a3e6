#pragma once

#include <fmt/core.h>

#include <cerrno>
#include <stdexcept>
#include <string>

// Two kinds of error, and only main.cpp turns them into exit codes.
namespace dgc {

// The user's: a config, file, checkpoint or message that cannot be used. One sentence that names the key, file or rank
// and, where there is one, the fix. Exit code 2.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void throw_user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

// One that a single key of the config is to blame for: "KEY: SENTENCE". Who knows where the key was written says so.
struct KeyError : UserError {
  KeyError(const std::string& blamed, const std::string& why)
      : UserError(blamed + ": " + why), key(blamed), sentence(why) {}

  std::string key, sentence;
};

// What the system says of an error of its own.
std::string error_text(int error = errno);

// Ours: a broken promise between two parts of the program. Exit code 1.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* expression, const std::string& what, const char* file, int line);

}  // namespace dgc

#define DGC_CHECK(condition, what)                                                 \
  do {                                                                             \
    if (!(condition)) ::dgc::check_failed(#condition, (what), __FILE__, __LINE__); \
  } while (false)
