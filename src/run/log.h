#pragma once

#include <filesystem>
#include <memory>
#include <string>

// Messages go through spdlog (spdlog::info, spdlog::warn, ...): to stderr in plain words, and with time and level to
// the log file of the run that is going on. spdlog::debug is for the log file alone. Bytes of a message that could
// control a terminal are written as \xNN (tensor/printable.h).
namespace spdlog::sinks {
class sink;
}

namespace dgc {

// Call once when the program starts: spdlog's own default would write to stdout, in colour.
void log_to_stderr();

// From this call on, stderr shows warnings and errors alone, and no status line. The log file still takes everything.
void quiet_stderr();

inline constexpr const char* kLogFile = "log.txt";

// Messages also go to RUN/log.txt, appended, for as long as this object lives. Throws a UserError if it cannot be
// opened.
class RunLog {
 public:
  explicit RunLog(const std::filesystem::path& run);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

 private:
  std::shared_ptr<spdlog::sinks::sink> sink_;
};

// Shows `line` at the bottom of the terminal. Messages logged meanwhile appear above it; an empty `line` removes it.
void show_status_line(const std::string& line);

}  // namespace dgc
