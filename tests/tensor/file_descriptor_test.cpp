#include "tensor/file_descriptor.h"

#include <fcntl.h>

#include <atomic>
#include <catch.hpp>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace dgc {
namespace {

int opened() { return ::open("/dev/null", O_WRONLY | O_CLOEXEC); }
bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

std::atomic<int> interruptions = 0;

// While it lives, SIGUSR1 interrupts a system call that blocks.
class InterruptingSignal {
 public:
  InterruptingSignal() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++interruptions; };
    sigemptyset(&action.sa_mask);
    REQUIRE(::sigaction(SIGUSR1, &action, &before_) == 0);
  }
  InterruptingSignal(const InterruptingSignal&) = delete;
  InterruptingSignal& operator=(const InterruptingSignal&) = delete;
  ~InterruptingSignal() { ::sigaction(SIGUSR1, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

// A thread whose work blocks until the test does its part.
class BlockedThread {
 public:
  explicit BlockedThread(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          work();
          done_ = true;
        }) {}

  // Many times, as the first signals may come before the work blocks.
  void interrupt() {
    const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
    for (int i = 0; i < 20; ++i) {
      const int before = interruptions;
      ::pthread_kill(thread_.native_handle(), SIGUSR1);
      while (interruptions == before && !done_) pause();
      pause();
    }
  }
  void join() { thread_.join(); }

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a file descriptor is closed once, with its last owner") {
  const int first = opened(), second = opened();
  REQUIRE((first >= 0 && second >= 0));
  {
    FileDescriptor owner(first);
    FileDescriptor next(std::move(owner));
    CHECK(next.get() == first);
    next = FileDescriptor(second);
    CHECK_FALSE(is_open(first));
    CHECK(is_open(second));
  }
  CHECK_FALSE(is_open(second));

  FileDescriptor closed(opened());
  CHECK(closed);
  CHECK(closed.close() == 0);
  CHECK_FALSE(closed);
  CHECK_FALSE(FileDescriptor());
}

TEST_CASE("reading all and writing all go on after signals, and reading ends where the file does") {
  constexpr size_t kSent = 1 << 20, kPiece = 10'000;  // more than a pipe holds; no whole number of pieces
  const InterruptingSignal signal;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  std::vector<std::byte> sent(kSent), received(kSent + kPiece);
  for (size_t i = 0; i < kSent; ++i) sent[i] = static_cast<std::byte>(i * 2654435761u >> 16);
  const auto read_piece = [&](size_t at) { return read_all(from, std::span(received).subspan(at, kPiece)); };

  std::optional<size_t> read;
  bool written = false;
  BlockedThread reader([&] { read = read_piece(0); });
  reader.interrupt();  // the pipe is empty
  BlockedThread writer([&] {
    written = write_all(to, sent);
    to.close();
  });
  reader.join();
  writer.interrupt();  // the pipe is full
  size_t filled = 0;
  while (read == kPiece && filled + kPiece <= kSent) {
    filled += kPiece;
    read = read_piece(filled);
  }
  // Where reading has failed, this lets the writer end.
  while (read_all(from, std::span(received).last(1)).value_or(0) > 0) continue;
  writer.join();

  CHECK(written);
  CHECK(read == kSent % kPiece);
  CHECK(filled == kSent - kSent % kPiece);
  received.resize(kSent);
  CHECK((received == sent));
  CHECK(read_piece(0) == 0);
}

}  // namespace dgc
