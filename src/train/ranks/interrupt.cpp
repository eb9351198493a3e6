#include "train/ranks/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
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
  } else if (seconds_now() - requested_at >= kSameSignal) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

using Handler = void (*)(int);

// Sets a handler as std::signal() does, but one that runs on the stack that sigaltstack() has set, and to its end
// before another signal comes. Returns the old handler.
Handler on_own_stack(int signal, Handler handler) {
  struct sigaction now = {}, before = {};
  now.sa_handler = handler;
  now.sa_flags = SA_RESTART | SA_ONSTACK;
  for (const int other : kSignals) sigaddset(&now.sa_mask, other);
  sigaction(signal, &now, &before);
  return before.sa_handler;
}

}  // namespace

// While oneDNN (2.6 and 3.7) multiplies matrices, a thread's stack pointer points into memory from malloc: a handler on
// that stack would overwrite the heap. A signal to the process comes to its main thread, which is the one that has a
// guard.
InterruptGuard::InterruptGuard() {
  static std::array<std::byte, 64 << 10> stack;
  const stack_t own{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&own, &stack_before_);
  stop_requested = false;
  for (const int signal : kSignals) on_own_stack(signal, on_signal);
  if (on_own_stack(SIGHUP, on_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGXFSZ, SIG_DFL);
  sigaltstack(&stack_before_, nullptr);
}

bool interrupted() { return stop_requested; }

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace dgc
