#include "train/ranks/meeting.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch.hpp>
#include <cerrno>
#include <thread>
#include <utility>

#include "dist/meeting/watch.h"
#include "run/log.h"
#include "tensor/errors.h"
#include "tests/dist/meeting/free_port.h"
#include "tests/support/run_files.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"

namespace dgc {
namespace {

using Catch::Contains;
using Catch::StartsWith;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

Launch launch_of(int rank, int size, int port) {
  Launch launch;
  launch.launcher = "torchrun";
  launch.rank = rank;
  launch.size = size;
  launch.meeting.host = "127.0.0.1";
  launch.meeting.port = port;
  return launch;
}

// What a rank does until all have met; its exit code. It closes `ready` when signals no longer kill it, and `met` when
// it has met rank 0.
int meet_as(const Launch& launch, int ready, int met) {
  const InterruptGuard guard;
  close(ready);
  Patience patience;
  const auto look = [&](const std::string& waiting) {
    if (waiting.find("has met rank 0") != std::string::npos && met >= 0) close(std::exchange(met, -1));
    patience(waiting);
  };
  try {
    const Watch watch({launch.rank, launch.size, 10s, look},
                      [&](std::span<std::byte> place, const WhileMeeting& while_waiting) {
                        share_from_rank0(launch, {.timeout = 1h, .while_waiting = while_waiting}, place);
                      });
  } catch (const Interrupted&) {
    return 130;
  } catch (const PeerFailed& error) {
    return std::string(error.what()).find("stopped by a signal") != std::string::npos ? 1 : 3;
  } catch (const std::exception&) {
    return 3;
  }
  return 0;
}

class Process {
 public:
  explicit Process(const Launch& launch) {
    int ready[2], met[2];
    REQUIRE(pipe(ready) == 0);
    REQUIRE(pipe(met) == 0);
    pid_ = fork();
    if (pid_ == 0) _exit(meet_as(launch, ready[1], met[1]));
    close(ready[1]);
    close(met[1]);
    met_ = met[0];
    wait_until_closed(ready[0]);
    close(ready[0]);
  }
  ~Process() {
    close(met_);
    if (pid_ > 0) kill(pid_, SIGKILL);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void wait_until_met() const { wait_until_closed(met_); }
  void send(int signal) const { kill(pid_, signal); }
  int wait() {
    int status = 0;
    if (pid_ > 0) waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static void wait_until_closed(int pipe) {
    char none;
    while (read(pipe, &none, 1) == -1 && errno == EINTR) {
    }
  }

  pid_t pid_ = -1;
  int met_ = -1;
};

// What a rank says whose work before the meeting is this.
std::string declined(const Launch& launch, const std::function<void()>& work) {
  const auto peers = make_single_communicator();
  try {
    or_decline(launch, *peers, {.timeout = 1min}, work);
  } catch (const ToldError& error) {
    return fmt::format("{}{}", error.users ? "user: " : "", error.what());
  } catch (const ToldByPeer& error) {
    return fmt::format("told: {}", error.what());
  }
  return "nothing";
}

// What keeps a rank from meeting the others.
std::string met(const Launch& launch) {
  std::byte blob{};
  try {
    share_from_rank0(launch, {.timeout = 1h}, std::span(&blob, 1));
  } catch (const PeerFailed& error) {
    return error.what();
  }
  return "nothing";
}

bool answers(int port) {
  for (int i = 0; i < 60'000; ++i) {
    Trouble trouble;
    if (connect_to(kLoopback, port, std::chrono::steady_clock::now() + 1min, trouble)) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

}  // namespace

TEST_CASE("one signal ends a rank that waits for others, and with it those that it has met") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const int port = test::free_port();
  Process rank0(launch_of(0, 3, port));
  REQUIRE(answers(port));
  SECTION("rank 0") {
    rank0.send(signal);
    CHECK(rank0.wait() == 130);
  }
  SECTION("rank 1, of which rank 0 tells rank 2, which comes late") {
    Process rank1(launch_of(1, 3, port));
    rank1.wait_until_met();
    rank1.send(signal);
    REQUIRE(rank1.wait() == 130);
    CHECK(rank0.wait() == 1);
  }
}

TEST_CASE("a rank that waits says for whom, every so often") {
  const test::TempRun run;
  const InterruptGuard guard;  // forgets the signals of other tests
  {
    const RunLog log(run.path());
    Patience often(0ms), rarely(1h);
    often("rank 1 waits for rank 0");
    rarely("rank 2 waits for rank 0");
  }
  CHECK_THAT(run.read("log.txt"), Contains("rank 1 waits for rank 0") && !Contains("rank 2"));
}

TEST_CASE("what keeps rank 0 from coming is told to all others") {
  const int port = test::free_port();
  std::string said;
  std::jthread rank0([&] { said = declined(launch_of(0, 3, port), [] { throw_user_error("there is no data"); }); });
  for (const int rank : {1, 2}) {
    CHECK_THAT(met(launch_of(rank, 3, port)), Contains("rank 0 (") && Contains(": there is no data"));
  }
  rank0.join();
  CHECK(said == "user: there is no data");
}

TEST_CASE("what keeps another rank from coming is told to rank 0 that waits, and to a rank that comes late") {
  const int port = test::free_port();
  std::string at_rank0;
  std::jthread rank0([&] {
    const Launch launch = launch_of(0, 3, port);
    at_rank0 = declined(launch, [&] {
      std::byte blob{};
      share_from_rank0(launch, {.timeout = 1h}, std::span(&blob, 1));
    });
  });
  CHECK(declined(launch_of(1, 3, port), [] { throw_user_error("there is no data"); }) == "user: there is no data");
  CHECK_THAT(met(launch_of(2, 3, port)), Contains("rank 1 (") && Contains(": there is no data"));
  decline_meeting(launch_of(1, 3, port), {.timeout = 1min}, "so that rank 0 need not wait for it");
  rank0.join();
  CHECK_THAT(at_rank0, StartsWith("told: rank 1 (") && Contains(": there is no data"));
}

TEST_CASE("rank 0 tells its error where exchange.interface bounds it, and a config that is read late counts") {
  const std::string interface = GENERATE("127.0.0.1", "no0");  // there is no no0
  CAPTURE(interface);
  RendezvousOptions meeting{.timeout = 1h};
  const auto single = make_single_communicator();
  const int port = test::free_port();
  bool is_told = false;
  std::thread rank0([&] {
    try {
      or_decline(launch_of(0, 2, port), *single, meeting, [&] {
        meeting.interface = interface;
        throw_user_error("there is no data");
      });
    } catch (const ToldError&) {
      is_told = true;
    }
  });
  CHECK_THAT(met(launch_of(1, 2, port)), Contains("rank 0 (") && Contains(": there is no data"));
  rank0.join();
  CHECK(is_told);
}

TEST_CASE("where MPI connects the ranks, or nobody is watched, an error is only thrown") {
  const auto single = make_single_communicator();
  const auto group = make_thread_communicators(2);
  const auto fails = [] { throw_user_error("there is no data"); };
  const Launch launch = launch_of(1, 2, 1);
  CHECK_THROWS_AS(or_decline(launch, *group[1], {}, fails), UserError);
  CHECK_THROWS_AS(or_decline(launch, *single, {.timeout = 0s}, fails), UserError);
  CHECK_THROWS_AS(or_decline({}, *single, {}, fails), UserError);
}

}  // namespace dgc
