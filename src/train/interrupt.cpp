#include "train/interrupt.h"

#include <atomic>
#include <csignal>
#include <ctime>

namespace dgc {
namespace {

// Signal handlers have no other way to reach the program.
std::atomic<bool> stop_requested = false;
std::atomic<double> requested_at = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<double>::is_always_lock_free);

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1};

double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

extern "C" void on_signal(int signal) {
  if (!stop_requested.exchange(true)) {
    requested_at = seconds_now();
  } else if (seconds_now() - requested_at >= 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  stop_requested = false;
  for (const int signal : kSignals) std::signal(signal, on_signal);
  std::signal(SIGXFSZ, SIG_IGN);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
}

bool interrupted() { return stop_requested; }

}  // namespace dgc
