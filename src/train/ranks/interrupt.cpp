#include "train/ranks/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <limits>
#include <mutex>
#include <system_error>

namespace dgc {
namespace {

// Signal handlers have no other way to reach the program.
std::atomic<bool> stop_requested = false;
std::atomic<double> requested_at = 0;  // infinity until the handler of the first signal has looked at the clock
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<double>::is_always_lock_free);

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The first process of a container is spared the default action, so it leaves by itself, with a shell's exit code.
[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, signal);
  pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
  std::raise(signal);
  _exit(128 + signal);
}

extern "C" void leave(int signal) { end_by(signal); }

extern "C" void on_signal(int signal) {
  if (!stop_requested.exchange(true)) {
    requested_at = seconds_now();
  } else if (seconds_now() - requested_at >= kSameSignal) {
    end_by(signal);
  }
}

void wait_for_end(const std::stop_token& end) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait(lock, end, [] { return false; });
}

}  // namespace

// While oneDNN (2.6 and 3.7) multiplies matrices, a thread's stack pointer points into memory from malloc: a handler on
// that stack would overwrite the heap. The threads that multiply, which include those that OpenMP adds at any time,
// block the signals: they are the thread that makes the guard, and threads that inherit its mask.
InterruptGuard::InterruptGuard() {
  requested_at = std::numeric_limits<double>::infinity();
  stop_requested = false;
  sigset_t stops;
  sigemptyset(&stops);
  for (size_t i = 0; i < before_.size(); ++i) {
    before_[i] = std::signal(kSignals[i], on_signal);
    if (kSignals[i] == SIGHUP && before_[i] == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
    sigaddset(&stops, kSignals[i]);
  }
  pthread_sigmask(SIG_BLOCK, &stops, &mask_before_);
  try {
    handler_ = std::jthread([stops](const std::stop_token& end) {
      pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
      wait_for_end(end);
    });
  } catch (const std::system_error&) {  // no more threads, so nothing will be trained; this thread takes the signals
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < before_.size(); ++i) std::signal(kSignals[i], before_[i]);
  handler_ = {};  // joins
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void heed_signals_as_first_process() {
  if (getpid() != 1) return;
  for (const int signal : kSignals) {
    if (std::signal(signal, leave) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

bool interrupted() { return stop_requested; }

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace dgc
