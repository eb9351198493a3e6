#include "train/reporter.h"

#include <catch.hpp>

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

}  // namespace dgc
