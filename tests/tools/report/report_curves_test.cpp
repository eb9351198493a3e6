#include "tools/report/report_curves.h"

#include <algorithm>
#include <catch.hpp>
#include <cmath>

#include "config/config.h"
#include "tests/support/run_files.h"

namespace dgc {
namespace {

using test::example_eval;
using test::example_step;
using Numbers = std::vector<double>;

RunData run_of(uint64_t seed, const std::vector<int64_t>& steps, double loss = 1) {
  RunData run;
  run.config = parse_config(R"({"model": {"type": "resnet", "depth": 8, "classes": 10}, "data": {"type": "synthetic"},
      "training": {"epochs": 2, "batch_per_worker": 8}, "learning_rate": {"type": "constant", "base": 0.1},
      "optimizer": {"type": "sgd"}})",
                            "test");
  run.config.seed = seed;
  for (const int64_t step : steps) {
    run.steps.push_back(example_step(step));
    run.steps.back().loss = loss;
  }
  return run;
}

RunData run_up_to(uint64_t seed, int64_t last, double loss = 1) {
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= last; ++step) steps.push_back(step);
  return run_of(seed, steps, loss);
}

void evaluate(RunData& run, const std::vector<std::pair<int64_t, double>>& accuracies) {
  for (const auto& [step, accuracy] : accuracies) {
    run.evals.push_back(example_eval(step));
    run.evals.back().measures.set(kTestAccuracy, accuracy);
  }
}

const PlotData& plot_named(const ReportCurves& all, const std::string& key) {
  return *std::ranges::find(all.plots, key, &PlotData::key);
}
const Numbers& y_of(const ReportCurves& all, const std::string& key) { return plot_named(all, key).curves.at(0).y; }

}  // namespace

TEST_CASE("seeds are averaged over those that have an evaluation at a step") {
  // Both are evaluated every 50 steps. The first stopped at step 80 and went on.
  RunData first = run_up_to(1, 160), second = run_up_to(2, 160);
  evaluate(first, {{50, 0.1}, {80, 0.2}, {100, 0.3}, {150, 0.4}, {160, 0.5}});
  evaluate(second, {{50, 0.2}, {100, 0.4}, {150, 0.5}, {160, 0.6}});
  const ReportCurves all = report_curves({{"run", {first, second}}});
  CHECK(all.groups[0].evaluations.along(Over::kSteps) == Numbers{50, 80, 100, 150, 160});
  CHECK(all.groups[0].evaluations.along(Over::kEpochs) == Numbers{5, 8, 10, 15, 16});
  CHECK(y_of(all, "test_accuracy") == Numbers{0.15, 0.2, 0.35, 0.45, 0.55});
  const CurveData& curve = plot_named(all, "test_accuracy").curves[0];
  CHECK(curve.low == Numbers{0.1, 0.2, 0.3, 0.4, 0.5});
  CHECK(curve.high == Numbers{0.2, 0.2, 0.4, 0.5, 0.6});
}

TEST_CASE("seeds that have diverged are in no curve where others have a result") {
  RunData good = run_up_to(1, 20), bad = run_up_to(2, 20);
  evaluate(good, {{20, 0.9}});
  evaluate(bad, {{20, 0.1}});
  good.final = FinalMetrics{};
  bad.diverged = true;
  const ReportCurves all = report_curves({{"run", {good, bad}}});
  CHECK(all.groups[0].seeds == 1);
  CHECK(y_of(all, "test_accuracy") == Numbers{0.9});
  const ReportCurves none = report_curves({{"run", {bad}}});
  CHECK(y_of(none, "test_accuracy") == Numbers{0.1});
}

TEST_CASE("seeds are averaged over those that have a row at a step") {
  // Rounds of four steps. The first run ended with half a round, and then went on.
  const RunData first = run_of(1, {4, 8, 10, 14, 16}, 1), second = run_of(2, {4, 8, 12, 16}, 3);
  const ReportCurves all = report_curves({{"run", {first, second}}});
  CHECK(all.groups[0].steps.along(Over::kSteps) == Numbers{4, 8, 10, 12, 14, 16});
  CHECK(y_of(all, "loss") == Numbers{2, 2, 1, 3, 1, 2});
}

TEST_CASE("of many rows a place stands for those of all runs since the place before") {
  RunData first = run_up_to(1, 900), second = run_up_to(2, 450, 3);
  for (size_t i = 0; i < 900; ++i) first.steps[i].loss = 2.0 / static_cast<double>(i + 1);
  const ReportCurves alone = report_curves({{"run", {first}}}), both = report_curves({{"run", {first, second}}});
  for (const ReportCurves* all : {&alone, &both}) {
    const Numbers& steps = all->groups[0].steps.along(Over::kSteps);
    REQUIRE(steps.size() == 360);
    CHECK((steps[0] == 2 && steps[1] == 5 && steps.back() == 900));
    CHECK(y_of(*all, "sparsity")[3] == 0.75);  // of step 10, the last of its place
    CHECK(all->smoothing == 2);
  }
  // Places 0 and 1 stand for steps 1, 2 and 3, 4, 5.
  const CurveData& noisy = plot_named(alone, "loss").curves[0];
  CHECK((noisy.y[0] == 1.5 && noisy.low[0] == 1 && noisy.high[0] == 2));
  CHECK(noisy.y[1] == Approx((2 / 3.0 + 0.5 + 0.4) / 3).epsilon(1e-3));
  const CurveData& seeds = plot_named(both, "loss").curves[0];
  CHECK((seeds.y[0] == 2.25 && seeds.low[0] == 1.5 && seeds.high[0] == 3));
  CHECK(seeds.y.back() == Approx(2 / 899.0).epsilon(1e-2));
}

TEST_CASE("a group's curves lie where its longest run was, and never run backwards") {
  // The short run is slower and sends more.
  RunData slow = run_up_to(1, 5), fast = run_up_to(2, 9);
  for (StepMetrics& step : slow.steps) step.seconds = 2, step.sent_bytes = 9000, step.epoch *= 3;
  evaluate(slow, {{5, 0.5}});
  evaluate(fast, {{9, 0.5}});
  const ReportCurves all = report_curves({{"run", {slow, fast}}});
  const Places &steps = all.groups[0].steps, &evaluations = all.groups[0].evaluations;
  CHECK(steps.along(Over::kTime) == Numbers{0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25});
  CHECK(steps.along(Over::kBytes) == Numbers{2000, 4000, 6000, 8000, 10000, 12000, 14000, 16000, 18000});
  CHECK(steps.along(Over::kEpochs).back() == 0.9);
  CHECK(evaluations.along(Over::kTime) == Numbers{1.25, 2.25});
  CHECK(evaluations.along(Over::kEpochs) == Numbers{0.5, 0.9});
}

TEST_CASE("in older files a row's time follows from its rate, of all its steps") {
  RunData run = run_of(1, {4, 8, 11});
  for (StepMetrics& row : run.steps) row.seconds = kNoNumber, row.samples_per_s = 100, row.local_steps = 4;
  run.steps[1].samples_per_s = 200;
  run.steps[2].local_steps = 3;
  const ReportCurves all = report_curves({{"run", {run}}});  // 8 samples in a step
  CHECK(all.groups[0].steps.along(Over::kTime) == Numbers{0.32, 0.48, 0.72});
}

TEST_CASE("steps are told to the last digit") {
  const ReportCurves all = report_curves({{"run", {run_of(1, {123'456, 1'234'567})}}});
  CHECK(all.groups[0].steps.along(Over::kSteps) == Numbers{123'456, 1'234'567});
}

TEST_CASE("between its rows a run goes on evenly") {
  const ReportCurves all = report_curves({{"run", {run_of(1, {4, 12}), run_of(2, {6, 9})}}});
  const Places& steps = all.groups[0].steps;
  CHECK(steps.along(Over::kSteps) == Numbers{4, 6, 9, 12});
  CHECK(steps.along(Over::kEpochs) == Numbers{0.4, 0.6, 0.9, 1.2});
  CHECK(steps.along(Over::kBytes) == Numbers{2000, 2000 + 20 * 0.25, 2000 + 20 * 0.625, 2020});
}

TEST_CASE("an axis covers the bands of seeds, and not the noise of one run") {
  const ReportCurves seeds = report_curves({{"run", {run_up_to(1, 9, 1), run_up_to(2, 9, 3)}}});
  CHECK((plot_named(seeds, "loss").low == 1 && plot_named(seeds, "loss").high == 3));
  RunData noisy = run_up_to(1, 720, 1);
  for (size_t i = 0; i < 720; i += 2) noisy.steps[i].loss = 3;
  const ReportCurves one = report_curves({{"run", {noisy}}});
  CHECK((plot_named(one, "loss").low == 2 && plot_named(one, "loss").high == 2));
  CHECK((plot_named(one, "loss").curves[0].low[7] == 1 && plot_named(one, "loss").curves[0].high[7] == 3));
  const RunGroup group{"run", {noisy}};
  CHECK(plot_named(report_curves({group, group, group, group}), "loss").curves[3].low.empty());
}

TEST_CASE("a loss that falls a hundredfold has a log scale, and the caption says so") {
  RunData run = run_up_to(1, 9, 1);
  const ReportCurves linear = report_curves({{"run", {run}}});
  CHECK(plot_named(linear, "loss").kind == AxisKind::kLinear);
  CHECK(plot_named(linear, "loss").caption() == "Training loss");
  run.steps.back().loss = 0.009;
  const ReportCurves log = report_curves({{"run", {run}}});
  CHECK(plot_named(log, "loss").kind == AxisKind::kLog);
  CHECK(plot_named(log, "loss").caption() == "Training loss (log scale)");
}

TEST_CASE("a step that sends nothing has no place on the axis of bytes") {
  RunData run = run_up_to(1, 3);
  run.steps[1].sent_bytes = 0;
  const ReportCurves all = report_curves({{"run", {run}}});
  CHECK(std::isnan(y_of(all, "sent_bytes")[1]));
  CHECK(plot_named(all, "sent_bytes").low == 2000);
}

TEST_CASE("what is sent in a step is a mean of all steps between two places, however rounds are cut") {
  // Rounds of 16 steps, and of 7 at the end of each epoch, in all of which as much is sent.
  RunData run = run_of(1, {});
  for (int64_t step = 0; std::ssize(run.steps) < 1440;) {
    const int64_t steps = run.steps.size() % 4 == 3 ? 7 : 16;
    step += steps;
    StepMetrics row = example_step(step);
    row.local_steps = steps;
    row.sent_bytes = 1100;
    run.steps.push_back(row);
  }
  const ReportCurves all = report_curves({{"run", {run}}});  // each place stands for four rounds
  CHECK(y_of(all, "sent_bytes") == Numbers(360, 80));
  CHECK(plot_named(all, "sent_bytes").curves[0].low.empty());
}

TEST_CASE("a sparsity near 100 % is not drawn as 100 %") {
  RunData run = run_up_to(1, 2);
  for (StepMetrics& step : run.steps) step.sparsity = 0.99996;
  const ReportCurves all = report_curves({{"run", {run}}});
  CHECK(y_of(all, "sparsity") == Numbers{0.99996, 0.99996});
  CHECK(plot_named(all, "sparsity").low == 0);  // where the axis begins
}

}  // namespace dgc
