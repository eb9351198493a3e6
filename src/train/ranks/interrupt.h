#pragma once

#include <signal.h>

#include <array>
#include <stdexcept>
#include <thread>

namespace dgc {

// Thrown when a signal has stopped the work. Where it leaves train(), the state is saved, or there is nothing to save,
// and the log says so. Exit code 130.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("stopped by a signal") {}
};

// Seconds after a signal in which another one counts as the same, because a launcher, or timeout, may pass on what its
// whole process group has already received.
inline constexpr int kSameSignal = 1;

// While an InterruptGuard lives, SIGINT, SIGTERM, SIGHUP (sent when the terminal closes) and SIGUSR1 (mpirun passes it
// on, and SLURM can send it some time before the end) only set a flag. A signal that follows kSameSignal or more later
// ends the program at once, as without a guard. SIGHUP stays ignored where it was ignored from the start, as under
// nohup.
//
// The guard has a thread that takes these signals, so interrupted() may become true a moment after kill() has returned.
// The signals are blocked in the thread that makes the guard, and in all threads and processes that it starts while the
// guard lives. The same thread has to destroy the guard.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  std::array<void (*)(int), 4> before_{};  // the signals' actions
  sigset_t mask_before_{};
  std::jthread handler_;
};

// The kernel spares the first process of a container the default action of signals, so that nothing but a guard would
// hear them. From this call on they end that process as they end any other.
void heed_signals_as_first_process();

// Whether a signal has come since the newest InterruptGuard was made, also once it is gone. Any thread may ask.
bool interrupted();

// From this call on, output to a terminal or pipe that is gone is lost, and the program goes on.
void ignore_broken_pipes();

}  // namespace dgc
