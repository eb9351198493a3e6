#include "run/log.h"

#include <spdlog/spdlog.h>

#include <catch.hpp>

#include "tensor/errors.h"
#include "tests/support/run_files.h"

namespace dgc {

TEST_CASE("a run's log gets what is said while it is open, and keeps what was there") {
  test::TempRun run;
  run.write("log.txt", "earlier\n");
  {
    const RunLog log(run.path());
    spdlog::info("one {}", 1);
    spdlog::warn("two");
  }
  spdlog::info("after the run");
  const auto text = run.read("log.txt");
  CHECK(text.rfind("earlier\n", 0) == 0);
  CHECK(text.find(" info: one 1\n") != std::string::npos);
  CHECK(text.find(" warning: two\n") != std::string::npos);
  CHECK(text.find("after the run") == std::string::npos);
}

TEST_CASE("what a message takes from elsewhere does not command the terminal that shows the log") {
  test::TempRun run;
  {
    const RunLog log(run.path());
    spdlog::info("a name \x1b[2Jand\n more: \u00e4");
  }
  CHECK(run.read("log.txt").ends_with(" info: a name \\x1b[2Jand\\x0a more: \u00e4\n"));
}

TEST_CASE("a log that cannot be opened is named") {
  CHECK_THROWS_WITH(RunLog("/proc/nowhere"), Catch::Contains("/proc/nowhere/log.txt"));
}

}  // namespace dgc
