#include <catch2/catch.hpp>

#include "tests/commands/program.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

// `env SETTINGS dgc info`, whose OpenMP prints its settings every time that the program starts.
std::string openmp_settings(std::vector<std::string> settings) {
  const TempRun folder;
  settings.insert(settings.end(), {"OMP_DISPLAY_ENV=verbose", DGC_BINARY, "info"});
  Child child(folder.path(), settings, "env");
  CHECK(child.wait() == 0);
  return child.err();
}

}  // namespace

TEST_CASE("OpenMP's threads spin shortly unless somebody has decided otherwise") {
  const std::vector<std::string> nobody = {"-u", "OMP_WAIT_POLICY", "-u", "GOMP_SPINCOUNT"};
  CHECK_THAT(openmp_settings(nobody), Contains("GOMP_SPINCOUNT = '1000'"));
  auto somebody = nobody;
  somebody.emplace_back("GOMP_SPINCOUNT=77");
  CHECK_THAT(openmp_settings(somebody), Contains("GOMP_SPINCOUNT = '77'") && !Contains("'1000'"));
  somebody.back() = "OMP_WAIT_POLICY=active";
  CHECK_THAT(openmp_settings(somebody), Contains("OMP_WAIT_POLICY = 'ACTIVE'") && !Contains("'1000'"));
}

}  // namespace dgc
