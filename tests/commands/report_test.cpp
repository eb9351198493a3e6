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
  CHECK(dgc.run({"report", "run", "--csv", "-", "--follow"}).code == 2);
  CHECK(dgc.run({"report", "run", "--csv", "-", "-o", "x.html"}).code == 2);
}

TEST_CASE("report follows a run until Ctrl-C, exit code 130, or until it has finished") {
  const Program dgc;
  Child early(dgc.folder(), {"report", "run", "--follow", "-o", "page.html"});
  REQUIRE(
      wait_until([&] { return early.err().find("waiting for a run: run: not a run directory") != std::string::npos; }));
  early.send(SIGINT);
  CHECK(early.wait() == 130);
  CHECK_FALSE(std::filesystem::exists(dgc.folder() / "page.html"));

  REQUIRE(dgc.run({"train", "tiny.json", "--out", "run", "--set", "training.epochs=1"}).code == 0);
  const Result done = dgc.run({"report", "run", "--follow", "-o", "page.html"});
  CHECK(done.code == 0);
  CHECK_THAT(done.out, Contains("test accuracy") && Contains("report: page.html"));
  CHECK_THAT(dgc.read("page.html"), Contains("</html>") && !Contains("data-reload"));
}

}  // namespace dgc
