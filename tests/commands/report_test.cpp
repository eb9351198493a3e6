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

TEST_CASE("report leaves out what is no run, but for one that is named alone, and replaces no run's own file") {
  const Program dgc;
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "runs/a", "--set", "training.max_steps=2"}).code == 0);
  dgc.write("runs/a.txt", "");
  std::filesystem::create_directory(dgc.folder() / "runs/begun");
  const Result shown = dgc.run({"report", "runs/a", "runs/a.txt", "runs/begun"});
  CHECK(shown.code == 0);
  CHECK_THAT(shown.err, Contains("runs/a.txt is left out") && Contains("runs/begun is left out"));
  CHECK_THAT(shown.out, Contains("test accuracy"));
  const Result mistyped = dgc.run({"report", "runs/a", "runs/b", "-o", "mistyped.html"});
  CHECK(mistyped.code == 2);
  CHECK(mistyped.err == "error: runs/b: there is no such run directory\n");
  CHECK_FALSE(std::filesystem::exists(dgc.folder() / "mistyped.html"));
  CHECK(dgc.run({"report", "runs/a", "runs/b", "--csv", "-"}).code == 2);
  CHECK(dgc.run({"report", "runs/begun"}).code == 2);
  CHECK(dgc.run({"report", "runs/begun", "runs/a.txt"}).code == 2);
  const std::string rows = dgc.read("runs/a/metrics.jsonl");
  CHECK_THAT(dgc.run({"report", "runs/a", "--csv", "runs/a/metrics.jsonl"}).err, Contains("is the run's own"));
  CHECK(dgc.read("runs/a/metrics.jsonl") == rows);
  dgc.write("runs/a/metrics.jsonl", rows.substr(0, rows.rfind("weights_xxh64")) + "weights_xxh64\":\"\\u001b[31m\"}\n");
  CHECK_THAT(dgc.run({"report", "runs/a"}).out, Contains("\\x1b[31m"));
}

TEST_CASE("report follows a run until Ctrl-C, exit code 130, or until it has finished") {
  const Program dgc;
  Child early(dgc.folder(), {"report", "run", "--follow", "-o", "page.html"});
  REQUIRE(wait_until(
      [&] { return early.err().find("waiting for a run: run is not a run directory") != std::string::npos; }));
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
