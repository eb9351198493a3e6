#pragma once

#include <signal.h>

#include <stdexcept>

namespace dgc {

// Thrown once a run that a signal stopped has saved its checkpoint, or has nothing to save, and has said so. Exit code
// 130.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("stopped by a signal") {}
};

// While one lives, SIGINT, SIGTERM, SIGHUP, which comes when the terminal closes, and SIGUSR1, which mpirun passes on
// and SLURM can send some time before the end, only set a flag. A second signal, a second later or more, ends the
// program at once, as without it; before that it is taken for the same one, sent to a whole process group and passed on
// besides. SIGHUP stays ignored where it is so from the start, as under nohup. And a file that grows beyond the
// process's limit (ulimit -f) is an error of write() like that of a full disk.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  stack_t stack_before_{};
};

bool interrupted();

// From now on a message for a terminal or a pipe that is gone is lost, and the program goes on.
void ignore_broken_pipes();

}  // namespace dgc
