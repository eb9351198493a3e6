#include <catch.hpp>

#include "tests/commands/program.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

}  // namespace

TEST_CASE("report writes rows as CSV, to a file or to standard output and nothing else there") {
  const Program dgc;
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "run", "--set", "training.epochs=1"}).code == 0);
  const Result printed = dgc.run({"report", "run", "--csv", "-"});
  CHECK(printed.code == 0);
  CHECK_THAT(printed.out, Catch::StartsWith("run,kind,step,epoch,loss,lr,") && Contains("\nrun,final,6,1.0,"));
  CHECK(dgc.run({"report", "run", "--csv", "rows.csv"}).out.empty());
  CHECK(dgc.read("rows.csv") == printed.out);
  CHECK_FALSE(std::filesystem::exists(dgc.folder() / "report.html"));
  CHECK(dgc.run({"report", "run", "--csv", "-", "-o", "x.html"}).code == 2);
}

}  // namespace dgc
