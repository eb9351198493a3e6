#include "tensor/machine_name.h"

#include <sched.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch.hpp>

using namespace dgc;

TEST_CASE("a machine's name is the one that uname says") {
  utsname system{};
  REQUIRE(uname(&system) == 0);
  CHECK(machine_name() == system.nodename);
}

TEST_CASE("a machine's name may be as long as Linux allows") {
  const std::string longest(64, 'n');
  enum Code : int { kWhole = 7, kOther, kRefused };
  const pid_t child = fork();
  if (child == 0) {  // in a namespace of its own, so that the name of this machine stays
    const bool named = (unshare(CLONE_NEWUTS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0) &&
                       sethostname(longest.data(), longest.size()) == 0;
    _exit(!named ? kRefused : machine_name() == longest ? kWhole : kOther);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kRefused) {
    WARN("skipped: this system does not let a process name a machine of its own");
    return;
  }
  CHECK(WEXITSTATUS(status) == kWhole);
}
