#include "train/interrupt.h"

#include <atomic>
#include <csignal>

namespace dgc {
namespace {

// Signal handlers have no other way to reach the program.
std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  if (stop_requested.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  stop_requested = false;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, on_signal);
  std::signal(SIGXFSZ, SIG_IGN);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) std::signal(signal, SIG_DFL);
}

bool interrupted() { return stop_requested; }

}  // namespace dgc
