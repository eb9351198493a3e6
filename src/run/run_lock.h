#pragma once

#include <filesystem>

namespace dgc {

// RUN/.lock: kept open and locked (flock) by the one process that writes the run, with its pid and machine inside. It
// is the lock that counts: what a dead process has left behind does not.
class RunLock {
 public:
  // Throws UserError that names the process which has the run. Where another machine's process seems to have it and the
  // file system cannot tell, there is only a warning.
  explicit RunLock(const std::filesystem::path& run);
  ~RunLock();  // removes the file
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace dgc
