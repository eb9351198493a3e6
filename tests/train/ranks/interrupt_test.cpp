#include "train/ranks/interrupt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch.hpp>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "dist/communicator.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

std::atomic<time_t> seconds_ahead = 0;  // of the true time, by this process's clocks
std::atomic<bool> hangs_up = false;     // whether SIGHUP comes in the next look at a clock, when a second has passed
std::atomic<bool> hung_up = false;
std::atomic<bool> stands_still = false;  // whether it is `now` for as long as one looks
timespec now{};

}  // namespace

// In place of the C library's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto read = reinterpret_cast<decltype(&clock_gettime)>(dlsym(RTLD_NEXT, "clock_gettime"));
  if (hangs_up.exchange(false)) {
    seconds_ahead = 1000;
    raise(SIGHUP);
    seconds_ahead = 0;
    hung_up = true;
  }
  const int result = read(clock, time);
  if (stands_still) *time = now;
  time->tv_sec += seconds_ahead;
  return result;
}

namespace {

std::set<std::string> threads_of_this_process() {
  std::set<std::string> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(entry.path().filename().string());
  }
  return threads;
}

bool blocks(const std::string& thread, int signal) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  for (std::string word; status >> word;) {
    if (word != "SigBlk:") continue;
    status >> word;
    return (std::stoull(word, nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

bool this_thread_blocks(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

// Whether a signal to this process, which this thread blocks, waits for another thread.
bool waits(int signal) {
  sigset_t waiting;
  sigpending(&waiting);
  return sigismember(&waiting, signal) == 1;
}

// As a shell counts it.
int exit_code(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum : int { kStillThere = 98, kNotAllowed = 99 };

[[noreturn]] void get_signals_seconds_apart() {
  const InterruptGuard guard;
  for (int i = 0; i < 1000; ++i) {
    kill(getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    seconds_ahead += 1000;
  }
  _exit(kStillThere);
}

}  // namespace

// oneDNN's stack pointer is in the heap meanwhile.
TEST_CASE("a signal in the middle of a matrix product overwrites nothing") {
  const auto backend = make_cpu_backend(1);
  const LinearArgs args{.batch = 64, .in = 128, .out = 10};
  const OnDevice x(*backend, random_floats(args.batch * args.in, 1)), w(*backend, random_floats(args.out * args.in, 2));
  const OnDevice y(*backend, random_floats(args.batch * args.out, 3));
  backend->linear_forward(args, x, w, {}, y);
  const auto truth = y.host();
  int wrong = 0;
  for (int round = 0; round < 100; ++round) {
    const InterruptGuard guard;
    const std::jthread sender([round] {
      std::this_thread::sleep_for(std::chrono::microseconds(7 * round));
      kill(getpid(), SIGUSR1);
    });
    while (!interrupted()) {
      backend->linear_forward(args, x, w, {}, y);
      if (y.host() != truth) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("under a guard no thread that computes takes its signals") {
  int take = 0, block = 0;
  std::atomic<int> ranks_that_block = 0;
  bool main_blocks = false, main_blocks_afterwards = true;
  std::jthread([&] {  // OpenMP has no threads for it yet
    const std::set<std::string> before = threads_of_this_process();
    {
      const InterruptGuard guard;
      main_blocks = this_thread_blocks(SIGTERM);
      const auto backend = make_cpu_backend(3);
      const OnDevice x(*backend, std::vector<float>(1 << 17)), y(*backend, std::vector<float>(1 << 17));
      backend->add(x, y);
      const auto lane = backend->make_lane();
      run_ranks(make_thread_communicators(2), [&](Communicator&) { ranks_that_block += this_thread_blocks(SIGTERM); });
      for (const std::string& thread : threads_of_this_process()) {
        if (!before.contains(thread)) ++(blocks(thread, SIGTERM) ? block : take);
      }
    }
    main_blocks_afterwards = this_thread_blocks(SIGTERM);
  })
      .join();
  CHECK(main_blocks);
  CHECK(ranks_that_block == 2);
  CHECK(take <= 1);   // the guard's own
  CHECK(block >= 3);  // two of OpenMP's, and the lane's
  CHECK_FALSE(main_blocks_afterwards);
}

TEST_CASE("two signals at once count as the same, also where the second comes within the handler of the first") {
  const InterruptGuard guard;
  SECTION("both wait") {
    clock_gettime(CLOCK_MONOTONIC, &now);
    stands_still = true;
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGINT);
    while (!interrupted() || waits(SIGTERM) || waits(SIGINT)) std::this_thread::yield();
    stands_still = false;
  }
  SECTION("one within the other's handler") {
    hangs_up = true;
    kill(getpid(), SIGTERM);
    while (!hung_up) std::this_thread::yield();
  }
  CHECK(interrupted());  // and the process lives
}

TEST_CASE("a signal that comes a second after another ends the process at once, also the first one of a container") {
  const bool is_first = GENERATE(false, true);
  CAPTURE(is_first);
  const pid_t child = fork();
  if (child == 0) {
    if (is_first) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(kNotAllowed);
      const pid_t first = fork();
      if (first != 0) _exit(first > 0 ? exit_code(first) : kNotAllowed);
    }
    get_signals_seconds_apart();
  }
  const int code = exit_code(child);
  if (code == kNotAllowed) {
    WARN("skipped: this user may not make a namespace of processes");
    return;
  }
  CHECK(code == 128 + SIGTERM);
}
