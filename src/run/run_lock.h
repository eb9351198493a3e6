#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tensor/file_descriptor.h"

namespace dgc {

// RUN/.lock holds the pid and machine of the one process that writes the run. That process keeps the file open and
// locked (flock). Only the lock counts: a file that a dead process has left behind locks nothing. Where the file system
// has no flock, what the file says counts, and whether that process is there.
class RunLock {
 public:
  // Throws UserError that names the process which has the run. Where the file system cannot tell, and the process that
  // seems to have the run is another machine's or not to be found, there is only a warning.
  explicit RunLock(const std::filesystem::path& run);
  ~RunLock();  // removes the file
  // False where the file is gone or another one, because somebody has moved or removed the run.
  bool holds() const;
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

// What RUN/.lock says; nothing where there is no such file, or none that can be read.
std::optional<std::string> lock_text(const std::filesystem::path& run);

}  // namespace dgc
