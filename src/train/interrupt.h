#pragma once

#include <stdexcept>

namespace dgc {

// Thrown once a run that SIGINT or SIGTERM stopped has saved its checkpoint. Exit code 130.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by the ranks that must end because another one has failed; says which and why. Exit code 1.
struct AnotherRankFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// While one lives, SIGINT and SIGTERM only set a flag. A second signal, a second later or more, ends the program at
// once, as without it; before that it is taken for the same one, sent to a whole process group and passed on besides.
// And a file that grows beyond the process's limit (ulimit -f) is an error of write() like that of a full disk.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

bool interrupted();

}  // namespace dgc
