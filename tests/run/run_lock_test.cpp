#include "run/run_lock.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch.hpp>
#include <cerrno>
#include <functional>
#include <utility>

#include "tensor/errors.h"
#include "tensor/machine_name.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"

namespace {

bool file_system_has_flock = true;
std::function<void()> before_next_flock;

}  // namespace

// In place of the C library's.
extern "C" int flock(int file, int operation) noexcept {
  static const auto lock = reinterpret_cast<decltype(&flock)>(dlsym(RTLD_NEXT, "flock"));
  if (const auto act = std::exchange(before_next_flock, nullptr)) act();
  if (file_system_has_flock) return lock(file, operation);
  errno = ENOLCK;
  return -1;
}

namespace dgc {
namespace {

// As long as this lives, the file system has no locks.
struct NoFlock {
  NoFlock() { file_system_has_flock = false; }
  ~NoFlock() { file_system_has_flock = true; }
  NoFlock(const NoFlock&) = delete;
  NoFlock& operator=(const NoFlock&) = delete;
};

namespace fs = std::filesystem;
using namespace test;
using Catch::Contains;

}  // namespace

TEST_CASE("a run has one writer, who is named, and no trace of it is left") {
  const TempRun run;
  {
    const RunLock lock(run.path());
    CHECK(lock_text(run.path()) == fmt::format("{} {}\n", getpid(), machine_name()));
    CHECK_THROWS_AS(RunLock(run.path()), UserError);
    CHECK_THROWS_WITH(RunLock(run.path()),
                      fmt::format("{} is being trained by process {} on {}; wait for it to end, or give another --out",
                                  run.path().string(), getpid(), machine_name()));
    CHECK_THROWS_WITH(train(tiny_config(), {.out = run.path()}), Contains("is being trained by process"));
    CHECK_THROWS_WITH(train(tiny_config(), {.out = run.path(), .overwrite = true}), Contains("is being trained"));
    CHECK(std::distance(fs::directory_iterator(run.path()), {}) == 1);  // the lock itself
  }
  CHECK(fs::is_empty(run.path()));
  CHECK_FALSE(lock_text(run.path()));
  CHECK_NOTHROW(RunLock(run.path()));
}

TEST_CASE("what a lock says of its owner is not believed blindly") {
  const TempRun run;
  const RunLock lock(run.path());
  run.write(".lock", GENERATE(as<std::string>(), "", "12", "x y", "12 a\x1b[31mb", "-3 host", "12 ../..",
                              std::string(5000, '7')));
  CHECK_THROWS_WITH(RunLock(run.path()), Contains("is being trained by another process;"));
}

TEST_CASE("a process that was killed holds no lock") {
  const TempRun run;
  const pid_t child = fork();
  if (child == 0) {
    const RunLock lock(run.path());
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(run.read(".lock") == fmt::format("{} {}\n", child, machine_name()));
  const TempRun log_folder;
  {
    const RunLog log(log_folder.path());
    const RunLock lock(run.path());
    CHECK(run.read(".lock") == fmt::format("{} {}\n", getpid(), machine_name()));
  }
  CHECK(log_folder.read("log.txt").empty());
}

TEST_CASE("a lock whose owner ends just now is taken anew, and not without a name") {
  const TempRun run;
  std::optional<RunLock> owner(run.path());
  before_next_flock = [&] { owner.reset(); };
  const RunLock lock(run.path());
  CHECK(lock.holds());
  CHECK(lock_text(run.path()) == fmt::format("{} {}\n", getpid(), machine_name()));
  CHECK_THROWS_AS(RunLock(run.path()), UserError);
}

TEST_CASE("a run whose directory another one has taken leaves that one's lock") {
  const TempRun run;
  {
    const RunLock lock(run.path());
    fs::remove(run.path() / ".lock");
    CHECK_FALSE(lock.holds());
    run.write(".lock", "4711 node7.example\n");
    CHECK_FALSE(lock.holds());
  }
  CHECK(run.read(".lock") == "4711 node7.example\n");
}

TEST_CASE("where the system does not tell what became of a lock, it counts as being there") {
  const TempRun run;
  const RunLock lock(run.path());
  fs::remove(run.path() / ".lock");
  fs::create_symlink(".lock", run.path() / ".lock");
  CHECK(lock.holds());
}

TEST_CASE("another machine's process that may still train is a warning") {
  const TempRun run, log_folder;
  run.write(".lock", "4711 node7.example\n");
  {
    const RunLog log(log_folder.path());
    const RunLock lock(run.path());
  }
  CHECK_THAT(log_folder.read("log.txt"),
             Contains("process 4711 on node7.example has begun to train it and has not said"));
}

TEST_CASE("where the file system has no locks, a process of this machine that is there has the run") {
  const NoFlock no_flock;
  const TempRun run;
  const auto lock_of = [](int64_t process, const std::string& host) { return fmt::format("{} {}\n", process, host); };
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  run.write(".lock", lock_of(child, machine_name()));
  std::string said;
  try {
    const RunLock lock(run.path());
  } catch (const UserError& error) {
    said = error.what();
  }
  CHECK(run.read(".lock") == lock_of(child, machine_name()));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(said ==
        fmt::format("{} is being trained by process {} on {}; wait for it to end, or give another --out; if that "
                    "process is another program, remove {}",
                    run.path().string(), child, machine_name(), (run.path() / ".lock").string()));
  for (const std::string& left_behind : {lock_of(child, machine_name()), lock_of(getpid(), machine_name()),
                                         lock_of(1, "node7.example"), lock_of(INT64_MAX, machine_name())}) {
    CAPTURE(left_behind);
    run.write(".lock", left_behind);
    const TempRun log_folder;
    {
      const RunLog log(log_folder.path());
      const RunLock lock(run.path());
      CHECK(run.read(".lock") == lock_of(getpid(), machine_name()));
    }
    CHECK_THAT(log_folder.read("log.txt"), Contains("has begun to train it and has not said"));
  }
}

TEST_CASE("a lock that is a link to a file leaves that alone") {
  const TempRun run;
  run.write("precious", "text");
  fs::create_symlink(run.path() / "precious", run.path() / ".lock");
  CHECK_THROWS_AS(RunLock(run.path()), UserError);
  CHECK(run.read("precious") == "text");
}

}  // namespace dgc
