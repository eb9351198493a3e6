#include "train/reporter.h"

#include <catch.hpp>

#include "run/log.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny.h"

namespace dgc {

using namespace test;

TEST_CASE("speeds count the samples of those who were there, over the time that steps took") {
  const TempRun run;
  const Config config = tiny_config();
  Reporter reporter(config, run.path(), {}, 8, 16);
  StepMetrics round;
  round.step = round.local_steps = 4;
  round.present = 0.5;
  reporter.step(round, 2);
  round.step = 8;
  round.present = 1;
  reporter.step(round, 6);
  reporter.final({.eval = {.step = 8, .epoch = 1, .measures = {{&kTestLoss, 1}}}});
  const std::vector<Row> rows = metrics_of(run.path());
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].number("samples_per_s") == 4 * 16 * 0.5 / 2);
  CHECK(rows[1].number("samples_per_s") == 4 * 16 / 6.0);
  CHECK(rows[2].number("samples_per_s") == (4 * 16 * 0.5 + 4 * 16) / 8);
}

TEST_CASE("what is told of an evaluation's time is told once") {
  const TempRun run;
  {
    const RunLog log(run.path());
    const Config config = tiny_config();
    Reporter reporter(config, run.path(), {}, 8, 16);
    for (int64_t s = 1; s <= 6; ++s) {
      StepMetrics metrics = example_step(s);
      metrics.left_out = s == 1 ? 2 : 0;
      if (s % 2 == 0) metrics.absent_ranks = {1};
      reporter.step(metrics, 1);
      if (s % 3 == 0) reporter.eval(example_eval(s));
    }
  }
  const std::string log = run.read("log.txt");
  CHECK(occurrences(log, "since the last evaluation") == 1);
  CHECK(occurrences(log, "rank 1 is late for the exchange") == 1);
  CHECK(occurrences(log, "rank 1 was late for 1 of the last 3 exchanges") == 1);
  CHECK(occurrences(log, "rank 1 was late for 2 of the last 3 exchanges") == 1);
}

}  // namespace dgc
