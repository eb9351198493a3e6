#include "commands/standard_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "json/text.h"
#include "tensor/errors.h"

namespace dgc {

void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // The file gets the lowest free number, which is the stream's. The wrong direction makes each use of the stream
    // fail.
    ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void print_all(const std::function<void()>& command) {
  try {
    command();
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) throw;  // no failure of fmt::print, which sets the error flag
    throw_user_error("standard output cannot be written: {}", error.code().message());
  }
}

void print_json(const std::string& json) { fmt::print("{}\n", printable_json(json)); }

}  // namespace dgc
