#include "dist/meeting/watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch.hpp>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "dist/communicator.h"
#include "dist/meeting/fixed_text.h"
#include "dist/meeting/handshake.h"
#include "dist/meeting/interfaces.h"
#include "dist/meeting/reception.h"
#include "dist/meeting/watch_link.h"
#include "tensor/errors.h"
#include "tensor/machine_name.h"

using namespace dgc;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;
using std::chrono::milliseconds;

namespace {

// Long enough that a busy machine does not silence a rank that is well.
constexpr milliseconds kTimeout(4000), kSilence(3200);
constexpr milliseconds kStart(60000);
constexpr milliseconds kLongTimeout(20000);  // so that what is a tenth of it, a second at most, is not missed

// Until `condition` holds; false after two minutes.
template <typename Condition>
bool wait_until(const Condition& condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return false;
}

// Rank 0's bytes for everyone, between threads or forked processes.
struct Board {
  static constexpr size_t kRanks = 5;
  std::atomic<bool> written = false, leave = false;
  std::atomic<int> failing = -1;  // the rank that is to fail, and to end at once
  std::array<std::byte, 1024> bytes{};
  std::array<std::atomic<bool>, kRanks> there{}, told{};
  char said[kRanks][512] = {};  // a rank's failure, once it is told

  void share(int rank, std::span<std::byte> mine) {
    DGC_CHECK(mine.size() <= bytes.size(), "a board that is too small");
    if (rank == 0) {
      std::memcpy(bytes.data(), mine.data(), mine.size());
      written = true;
    } else if (wait_until([&] { return written.load(); })) {
      std::memcpy(mine.data(), bytes.data(), mine.size());
    }
  }
};

WatchOptions options_of(int rank, int size) { return {rank, size, kTimeout}; }

std::unique_ptr<Watch> watch_of(Board& board, const WatchOptions& options) {
  return std::make_unique<Watch>(
      options, [&](std::span<std::byte> bytes, const WhileMeeting&) { board.share(options.rank, bytes); });
}

// Ranks that are processes, which live until they are told to leave, or that another has failed.
class Processes {
 public:
  explicit Processes(int size) {
    void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    board_ = new (memory) Board;
    for (int rank = 0; rank < size; ++rank) {
      const pid_t process = fork();
      if (process == 0) live(rank, size);
      processes_.push_back(process);
    }
    REQUIRE(wait_until([&] {
      return std::all_of(board_->there.begin(), board_->there.begin() + size,
                         [](const auto& yes) { return yes.load(); });
    }));
  }
  ~Processes() {
    for (const pid_t process : processes_) {
      if (process > 0) kill(process, SIGKILL);
    }
    for (size_t rank = 0; rank < processes_.size(); ++rank) exit_code(rank);
    munmap(board_, sizeof(Board));
  }

  Board& board() { return *board_; }
  int pid(size_t rank) const { return processes_[rank]; }
  void send(size_t rank, int signal) const { kill(processes_[rank], signal); }
  int exit_code(size_t rank) {
    int status = 0;
    if (processes_[rank] > 0) waitpid(processes_[rank], &status, 0);
    processes_[rank] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string failure(size_t rank) {
    return wait_until([&] { return board_->told[rank].load(); }) ? board_->said[rank] : "nothing";
  }

 private:
  [[noreturn]] void live(int rank, int size) {
    const auto me = static_cast<size_t>(rank);
    {
      const auto watch = watch_of(*board_, options_of(rank, size));
      board_->there[me] = true;
      while (!board_->leave && !watch->failure()) {
        if (board_->failing == rank) {
          watch->fail("the disk is full");
          _exit(3);
        }
        usleep(1000);
      }
      const std::string what = watch->failure().value_or("");
      what.copy(board_->said[me], sizeof(board_->said[me]) - 1);
      board_->told[me] = true;
    }
    _exit(7);
  }

  Board* board_ = nullptr;
  std::vector<pid_t> processes_;
};

// Ranks that are threads. What each says at its end.
template <typename Body>
std::vector<std::string> as_threads(int size, const Body& body) {
  Board board;
  std::vector<std::string> said(static_cast<size_t>(size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      std::string& mine = said[static_cast<size_t>(rank)];
      try {
        const auto watch = watch_of(board, options_of(rank, size));
        body(rank, *watch);
        mine = watch->failure().value_or("");
      } catch (const std::exception& error) {
        mine = error.what();
      }
    });
  }
  threads.clear();
  return said;
}

std::string process(size_t rank, int pid) { return fmt::format("rank {} ({}, pid {})", rank, machine_name(), pid); }

}  // namespace

TEST_CASE("ranks that say goodbye are no failure", "[watch]") {
  const int size = GENERATE(1, 2, 3, 5);
  const auto said = as_threads(size, [&](int rank, const Watch& watch) {
    std::this_thread::sleep_for(milliseconds(50) * ((rank * 3 + 1) % size));  // rank 0 leaves early, not first
    watch.check();
  });
  CHECK(said == std::vector<std::string>(static_cast<size_t>(size)));
}

TEST_CASE("nobody is watched when the timeout is 0", "[watch]") {
  bool shared = false;
  Watch watch({0, 4, milliseconds(0)}, [&](std::span<std::byte>, const WhileMeeting&) { shared = true; });
  watch.fail("nobody hears this");
  CHECK_FALSE(watch.failure());
  CHECK(watch.cause_of("a symptom") == "a symptom");
  CHECK_FALSE(shared);
}

TEST_CASE("what a rank says of its own failure reaches all", "[watch]") {
  const int failing = GENERATE(0, 1, 3);
  const std::string reason = GENERATE(std::string("the disk is full"), std::string(5000, 'x'));
  const auto said = as_threads(4, [&](int rank, Watch& watch) {
    if (rank == failing) {
      watch.fail(reason);
      watch.fail("a second reason");
    }
    if (!wait_until([&] { return watch.failure().has_value(); })) throw std::runtime_error("no failure");
    if (watch.cause_of("a symptom") == "a symptom") throw std::runtime_error("no cause");
    try {
      watch.check();
      throw std::runtime_error("check() throws nothing");
    } catch (const PeerFailed&) {
    }
  });
  const std::string whole = process(static_cast<size_t>(failing), getpid()) + ": " + reason;
  for (int rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    const std::string& mine = said[static_cast<size_t>(rank)];
    CHECK(whole.starts_with(mine));
    CHECK(mine.size() >= std::min<size_t>(whole.size(), 400));
  }
}

TEST_CASE("what a rank says of its failure reaches all also where its process ends at once", "[watch]") {
  Processes ranks(3);
  ranks.board().failing = GENERATE(0, 2);
  const auto failing = static_cast<size_t>(ranks.board().failing);
  for (const size_t other : {2 - failing, size_t{1}}) {
    CHECK(ranks.failure(other) == process(failing, ranks.pid(failing)) + ": the disk is full");
  }
  CHECK(ranks.exit_code(failing) == 3);
}

TEST_CASE("an error that another rank's end explains waits for the news of it", "[watch]") {
  Board board;
  std::atomic<bool> asks = false;
  std::string cause;
  {
    const std::jthread rank0([&] {
      const auto watch = watch_of(board, {0, 2, kLongTimeout});
      wait_until([&] { return asks.load(); });
      std::this_thread::sleep_for(milliseconds(50));
      watch->fail("the disk is full");
    });
    const auto watch = watch_of(board, {1, 2, kLongTimeout});
    asks = true;
    cause = watch->cause_of("a connection is broken");
  }
  CHECK(cause == process(0, getpid()) + ": the disk is full");
}

TEST_CASE("a rank that is killed is named by all others", "[watch]") {
  const size_t victim = GENERATE(0u, 1u, 2u);
  Processes ranks(3);
  const std::string expected = process(victim, ranks.pid(victim)) + " has died";
  ranks.send(victim, SIGKILL);
  for (size_t rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    CHECK(ranks.failure(rank) == expected);
    CHECK(ranks.exit_code(rank) == 7);
  }
}

TEST_CASE("a rank that is stopped is named by all others, and learns it when it goes on", "[watch]") {
  const size_t victim = GENERATE(0u, 2u);
  Processes ranks(3);
  const std::string expected = process(victim, ranks.pid(victim)) + " has not answered for 3.2 s";
  ranks.send(victim, SIGSTOP);
  for (size_t rank = 0; rank < 3; ++rank) {
    if (rank != victim) CHECK(ranks.failure(rank) == expected);
  }
  for (size_t rank = 0; rank < 3; ++rank) {
    if (rank != victim) CHECK(ranks.exit_code(rank) == 7);
  }
  ranks.send(victim, SIGCONT);
  CHECK(ranks.failure(victim) == expected + ": this process, which the others have given up");
  CHECK(ranks.exit_code(victim) == 7);
}

TEST_CASE("a run that is stopped and continued as a whole goes on", "[watch]") {
  Processes ranks(3);
  for (size_t rank = 0; rank < 3; ++rank) ranks.send(rank, SIGSTOP);
  std::this_thread::sleep_for(kTimeout);
  for (size_t rank = 0; rank < 3; ++rank) ranks.send(rank, SIGCONT);
  std::this_thread::sleep_for(milliseconds(300));
  ranks.board().leave = true;
  for (size_t rank = 0; rank < 3; ++rank) {
    CHECK(ranks.failure(rank).empty());
    CHECK(ranks.exit_code(rank) == 7);
  }
}

TEST_CASE("strangers and ranks that are not expected are turned away", "[watch]") {
  Board board;
  std::array<std::string, 4> answers;
  std::optional<std::string> at_rank0 = "not started";
  std::jthread rank0([&] { at_rank0 = watch_of(board, options_of(0, 2))->failure(); });
  const auto strangers = [&](std::span<std::byte> bytes, const WhileMeeting&) {
    board.share(1, bytes);
    WatchPlace place;
    std::memcpy(&place, bytes.data(), sizeof(place));
    const auto answer_to = [&](int rank, int size, Secret::Bytes secret) -> std::string {
      Trouble trouble;
      const Deadline deadline = std::chrono::steady_clock::now() + kStart;
      const Socket socket = connect_to(kLoopback, static_cast<int>(place.port), deadline, trouble);
      const WatchFrame hello = watch_frame_of_this_process(WatchWord::hello, rank, size);
      auto session =
          introduce(socket, Secret(secret), Purpose::heartbeat, std::as_bytes(std::span(&hello, 1)), deadline, trouble);
      WatchFrame answer;
      if (!session) return trouble.text;
      trouble = receive_sealed(socket, *session, std::as_writable_bytes(std::span(&answer, 1)), deadline);
      return trouble.text.empty() ? "an answer" : trouble.text.substr(0, 11);
    };
    Secret::Bytes wrong = place.secret;
    wrong[31] ^= std::byte{1};
    answers = {answer_to(1, 2, wrong), answer_to(1, 3, place.secret), answer_to(0, 2, place.secret),
               answer_to(-1, 2, place.secret)};
  };
  const Watch rank1(options_of(1, 2), strangers);
  rank0.join();
  CHECK_FALSE(at_rank0);
  for (const std::string& answer : answers) CHECK(answer == "it hangs up");
  CHECK_FALSE(rank1.failure());
}

TEST_CASE("when all ranks have come, rank 0's door is closed", "[watch]") {
  Board board;
  const std::jthread rank0([&] {
    const auto watch = watch_of(board, options_of(0, 2));
    wait_until([&] { return board.leave.load(); });
  });
  const auto rank1 = watch_of(board, options_of(1, 2));
  WatchPlace place;
  std::memcpy(&place, board.bytes.data(), sizeof(place));
  Trouble trouble;
  CHECK_FALSE(connect_to(kLoopback, static_cast<int>(place.port), std::chrono::steady_clock::now() + kStart, trouble));
  board.leave = true;
}

TEST_CASE("who takes over a rank's connection is noticed", "[watch]") {
  const WatchFrame beat;
  const auto bytes = std::as_bytes(std::span(&beat, 1));
  const int forged = GENERATE(0, 1, 2);
  CAPTURE(forged);
  Board board;
  std::string said = "nothing";
  std::jthread rank0([&] {
    try {
      const auto watch = watch_of(board, options_of(0, 2));
      if (wait_until([&] { return watch->failure().has_value(); })) said = *watch->failure();
    } catch (const PeerFailed& error) {  // noticed while it still meets the others
      said = error.what();
    }
  });
  WatchPlace place;
  board.share(1, std::as_writable_bytes(std::span(&place, 1)));
  Trouble trouble;
  const Deadline deadline = std::chrono::steady_clock::now() + kStart;
  const Socket socket = connect_to(kLoopback, static_cast<int>(place.port), deadline, trouble);
  const WatchFrame hello = watch_frame_of_this_process(WatchWord::hello, 1, 2);
  auto session = introduce(socket, Secret(place.secret), Purpose::heartbeat, std::as_bytes(std::span(&hello, 1)),
                           deadline, trouble);
  REQUIRE(session);
  WatchFrame welcome;
  REQUIRE(receive_sealed(socket, *session, std::as_writable_bytes(std::span(&welcome, 1)), deadline).text.empty());
  const std::vector<std::byte> first = session->seal(bytes);
  session->note_sent();
  REQUIRE(send_all(socket, first, deadline));
  std::vector<std::byte> next = session->seal(bytes);
  if (forged == 0) next.back() ^= std::byte{1};  // changed on its way
  if (forged == 1) next = first;                 // repeated
  if (forged == 2) {                             // one before it was left out
    session->note_sent();
    next = session->seal(bytes);
  }
  REQUIRE(send_all(socket, next, deadline));
  rank0.join();
  CHECK(said == process(1, getpid()) + ": something else speaks in its connection");
}

TEST_CASE("a rank that never joins is named", "[watch]") {
  Board board;
  std::string said;
  std::jthread rank1([&] {
    try {
      watch_of(board, options_of(1, 4));
    } catch (const PeerFailed& error) {
      said = error.what();
    }
  });
  WatchOptions hasty = options_of(0, 4);
  hasty.timeout = milliseconds(2000);
  const std::string expected = "rank 0 waited 4 s for the heartbeats of all ranks, but those of 2, 3 did not come";
  CHECK_THROWS_WITH(watch_of(board, hasty), expected);
  rank1.join();
  CHECK_THAT(said, StartsWith("rank 0 (") && EndsWith(": " + expected));
}

TEST_CASE("of a thousand ranks that never join eight are named", "[watch]") {
  Board board;
  WatchOptions curious = options_of(0, 1024);
  curious.while_waiting = [](const std::string& whom) { throw std::runtime_error(whom); };
  CHECK_THROWS_WITH(watch_of(board, curious),
                    "rank 0 waits for the heartbeats of ranks 1, 2, 3, 4, 5, 6, 7, 8, ... (1023 in all)");
  WatchOptions hasty = options_of(0, 1024);
  hasty.timeout = milliseconds(100);
  CHECK_THROWS_WITH(watch_of(board, hasty),
                    "rank 0 waited 0.2 s for the heartbeats of all ranks, but those of 1, 2, 3, 4, 5, 6, 7, 8, ... "
                    "(1023 in all) did not come");
}

TEST_CASE("a machine's longest name has room in what the ranks are told", "[watch]") {
  const std::string longest(64, 'n');
  WatchPlace place;
  set_text(place.machine, longest);
  CHECK(get_text(place.machine) == longest);
  WatchFrame hello;
  set_text(hello.text, longest);
  CHECK(hello.who() == "rank 0 (" + longest + ", pid 0)");
}

TEST_CASE("a rank that cannot reach rank 0 says what to do", "[watch]") {
  WatchOptions options = options_of(1, 2);
  options.timeout = milliseconds(300);
  const auto nowhere = [&](std::span<std::byte> bytes, const WhileMeeting&) {
    int port = 0;
    std::string problem;
    REQUIRE(!listen_at(kLoopback, port, problem).empty());  // and closed again
    const WatchPlace place = watch_place_of_this_machine(port, kLoopback, options.timeout);
    std::memcpy(bytes.data(), &place, sizeof(place));
  };
  CHECK_THROWS_AS(Watch(options, nowhere), UserError);
  CHECK_THROWS_WITH(Watch(options, nowhere), StartsWith("cannot reach rank 0's machine ") &&
                                                 Contains("(127.0.0.1: Connection refused; ") &&
                                                 Contains("set exchange.failure_timeout_s to 0 to do without"));
}

TEST_CASE("a rank that ends while all wait for the last one is named by those that have come", "[watch]") {
  const int ending = GENERATE(0, 1, 2);
  CAPTURE(ending);
  Board board;
  std::atomic<int> waiting = 0;
  std::array<std::string, 3> said;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {  // of 4
      threads.emplace_back([&, rank] {
        const auto me = static_cast<size_t>(rank);
        bool counted = false;
        WatchOptions options = options_of(rank, 4);
        options.while_waiting = [&](const std::string& whom) {
          const bool met = whom.find(rank == 0 ? "heartbeats of ranks 3" : "has met rank 0") != std::string::npos;
          if (met && !std::exchange(counted, true)) ++waiting;
          if (rank == ending && waiting == 3) throw std::runtime_error("stopped by a signal");
        };
        try {
          watch_of(board, options);
        } catch (const std::exception& error) {
          said[me] = error.what();
        }
      });
    }
  }
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    const std::string reason = "stopped by a signal";
    CHECK(said[static_cast<size_t>(rank)] ==
          (rank == ending ? reason : process(static_cast<size_t>(ending), getpid()) + ": " + reason));
  }
}

TEST_CASE("a rank that joins after another has failed learns why", "[watch]") {
  Board board;
  std::array<std::string, 3> said;
  const auto be = [&](int rank, const WhileMeeting& while_waiting) {
    WatchOptions options = options_of(rank, 3);
    options.while_waiting = while_waiting;
    try {
      watch_of(board, options);
    } catch (const std::exception& error) {
      said[static_cast<size_t>(rank)] = error.what();
    }
  };
  std::atomic<bool> met = false, told = false;
  std::jthread rank0([&] {
    be(0, [&](const std::string& whom) {
      if (whom.find("heartbeats of ranks 2") == std::string::npos) return;
      met = true;
      wait_until([&] { return told.load(); });  // the heartbeat's thread goes on meanwhile
    });
  });
  be(1, [&](const std::string&) {
    if (met) throw std::runtime_error("the disk is full");
  });
  be(2, [](const std::string&) {});
  told = true;
  rank0.join();
  CHECK(said[1] == "the disk is full");
  for (const size_t other : {0, 2}) CHECK(said[other] == process(1, getpid()) + ": the disk is full");
}

TEST_CASE("a rank that joins while rank 0 leaves learns why", "[watch]") {
  Board board;
  std::atomic<bool> leaves = false;
  std::jthread rank0([&] {
    WatchOptions options{0, 2, kLongTimeout};
    options.while_waiting = [&](const std::string&) {
      if (!board.written) return;
      leaves = true;
      throw std::runtime_error("the disk is full");
    };
    try {
      watch_of(board, options);
    } catch (const std::exception&) {
    }
  });
  std::string said;
  try {
    const Watch rank1({1, 2, kLongTimeout}, [&](std::span<std::byte> bytes, const WhileMeeting&) {
      board.share(1, bytes);
      wait_until([&] { return leaves.load(); });
    });
  } catch (const std::exception& error) {
    said = error.what();
  }
  rank0.join();
  CHECK(said == process(0, getpid()) + ": the disk is full");
}

namespace {

// A rank 0 of 3 that lets one rank in, says some words, and then nothing more until that rank ends.
class TerseRank0 {
 public:
  explicit TerseRank0(const std::vector<WatchWord>& words, milliseconds timeout = kTimeout) {
    std::string problem;
    listeners_ = listen_at(std::vector<std::string>{"127.0.0.1"}, port_, problem);
    REQUIRE_FALSE(listeners_.empty());
    place = watch_place_of_this_machine(port_, kLoopback, timeout);
    thread_ = std::jthread([this, words] {
      Reception reception(std::move(listeners_), Secret(place.secret), {Purpose::heartbeat, sizeof(WatchFrame), 8});
      std::vector<Reception::Caller> callers;
      if (!wait_until([&] { return ended_ || !(callers = reception.receive()).empty(); }) || callers.empty()) return;
      WatchLink link(std::move(callers[0].socket), callers[0].session);
      link.send(watch_frame_of_this_process(WatchWord::welcome, 0, 3));
      for (const WatchWord word : words) {
        WatchFrame frame;
        frame.word = word;
        link.send(frame);
      }
      WatchFrame answer;
      wait_until([&] { return link.receive(answer) == WatchLink::Heard::end; });
    });
  }
  ~TerseRank0() { ended_ = true; }
  TerseRank0(const TerseRank0&) = delete;
  TerseRank0& operator=(const TerseRank0&) = delete;

  // How rank 1 calls it that is given this place.
  WatchLink called(const std::string& met_at, const Wait& wait) const {
    WatchFrame welcome;
    return join_watch(place, met_at, watch_frame_of_this_process(WatchWord::hello, 1, 3), wait, welcome);
  }
  // Another socket at its port, that says nothing; empty where that port is taken there.
  std::vector<Socket> silent_at(const std::string& address) const {
    int port = port_;
    std::string problem;
    auto listeners = listen_at(std::vector<std::string>{address}, port, problem);
    if (listeners.empty()) WARN("skipped: this machine cannot listen at " << address << " (" << problem << ")");
    return listeners;
  }

  WatchPlace place;

 private:
  int port_ = 0;
  std::vector<Socket> listeners_;
  std::atomic<bool> ended_ = false;
  std::jthread thread_;
};

// What ends the watch of rank 1, which is given this place.
std::string end_of_rank1(const WatchPlace& place, WatchOptions options) {
  const Deadline deadline = std::chrono::steady_clock::now() + kStart;
  options.while_waiting = [&](const std::string& whom) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error(whom + " in vain");
  };
  try {
    const Watch watch(options, [&](std::span<std::byte> bytes, const WhileMeeting&) {
      std::memcpy(bytes.data(), &place, sizeof(place));
    });
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

constexpr const char* kSilent = "127.0.0.2";

// A place in which another machine gives these as its addresses.
WatchPlace elsewhere(WatchPlace place, const std::string& addresses) {
  set_text(place.machine, "no-such-host..invalid");
  set_text(place.addresses, addresses);
  return place;
}

}  // namespace

TEST_CASE("rank 0 that leaves before all have come is named", "[watch]") {
  const TerseRank0 rank0({WatchWord::goodbye});
  CHECK(end_of_rank1(rank0.place, options_of(1, 3)) == process(0, getpid()) + " has left before all ranks had come");
}

TEST_CASE("rank 0's timeout is that of all ranks", "[watch]") {
  const TerseRank0 rank0({}, milliseconds(500));
  WatchOptions options = options_of(1, 3);
  options.timeout = std::chrono::hours(1);
  CHECK(end_of_rank1(rank0.place, options) == process(0, getpid()) + " has not answered for 0.4 s");
}

TEST_CASE("rank 0 is looked for first where the ranks have met", "[watch]") {
  TerseRank0 rank0({});
  const std::vector<Socket> silent = rank0.silent_at(kSilent);
  if (silent.empty()) return;
  rank0.place = elsewhere(rank0.place, kSilent);
  CHECK(rank0.called("127.0.0.1", std::chrono::steady_clock::now() + kStart));
  std::string peer;
  CHECK_FALSE(accept_from(silent[0], peer));
}

TEST_CASE("a host that is silent leaves time for those behind it", "[watch]") {
  TerseRank0 rank0({});
  const std::vector<Socket> silent = rank0.silent_at(kSilent);
  if (silent.empty()) return;
  rank0.place = elsewhere(rank0.place, fmt::format("{} 127.0.0.1", kSilent));
  int looks = 0;  // ten in a second at most, and a third of 6 s is the share of each host
  CHECK(rank0.called("", {std::chrono::steady_clock::now() + std::chrono::seconds(6), [&] { ++looks; }}));
  CHECK(looks < 40);
}
