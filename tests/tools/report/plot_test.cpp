#include <catch.hpp>
#include <cmath>
#include <set>

#include "tests/support/run_files.h"
#include "tools/report/plot_scale.h"
#include "tools/report/svg_plot.h"

namespace dgc {
namespace {

using test::occurrences;

std::vector<std::string> labels(const PlotScale& scale) {
  std::vector<std::string> out;
  for (const Tick& tick : scale.ticks()) out.push_back(tick.label);
  return out;
}

// A plot over steps 0, 1, 2 ..., of whose groups each has one curve.
ReportCurves plot_of(const std::vector<std::vector<double>>& curves) {
  ReportCurves all;
  PlotData plot{.key = "loss", .name = "a < b", .low = 0, .high = 1};
  for (const std::vector<double>& y : curves) {
    PlottedGroup group{"\"><script>", 1, {}, {}};
    for (size_t i = 0; i < y.size(); ++i) group.steps.along(Over::kSteps).push_back(static_cast<double>(i));
    plot.curves.push_back({.group = all.groups.size(), .y = y});
    all.groups.push_back(std::move(group));
  }
  all.plots.push_back(std::move(plot));
  return all;
}

std::string drawn(const ReportCurves& all) { return svg_plot(all, all.plots[0], Over::kSteps); }

}  // namespace

using Labels = std::vector<std::string>;

TEST_CASE("axes have ticks at round numbers") {
  CHECK(labels({AxisKind::kLinear, 0, 2.3}) == Labels{"0", "0.5", "1", "1.5", "2", "2.5"});
  CHECK(labels({AxisKind::kCount, 0, 11700}) == Labels{"0", "5000", "10k"});
  CHECK(labels({AxisKind::kCount, 0, 25e8}) == Labels{"0", "500M", "1G", "1.5G", "2G", "2.5G"});
  CHECK(labels({AxisKind::kLog, 1e12, 1e24}) == Labels{"1e+12", "1e+14", "1e+16", "1e+18", "1e+20", "1e+22", "1e+24"});
  CHECK(labels({AxisKind::kPercent, 0.47, 0.914}) == Labels{"40 %", "50 %", "60 %", "70 %", "80 %", "90 %", "100 %"});
  CHECK(labels({AxisKind::kLog, 0.004, 2}) == Labels{"0.001", "0.01", "0.1", "1", "10"});
  CHECK(labels({AxisKind::kLog, 30, 290}) == Labels{"20", "50", "100", "200", "500"});
  CHECK(labels({AxisKind::kLog, 111, 168}) == Labels{"100", "120", "140", "160", "180"});
  CHECK(labels({AxisKind::kLog, 113, 113}) == Labels{"110", "115"});
  CHECK(labels({AxisKind::kLogBytes, 3000, 1100000}) ==
        Labels{"2 KiB", "8 KiB", "32 KiB", "128 KiB", "512 KiB", "2 MiB"});
  CHECK(labels({AxisKind::kSparsity, 0, 0.999}) == Labels{"0 %", "50 %", "75 %", "90 %", "99 %", "99.9 %"});
}

TEST_CASE("what an axis spaces evenly lies evenly") {
  const auto is_even = [](const PlotScale& scale, double a, double b, double c) {
    CHECK(scale.place(a) < scale.place(b));
    CHECK(scale.place(b) - scale.place(a) == Approx(scale.place(c) - scale.place(b)));
  };
  for (const AxisKind kind : {AxisKind::kLinear, AxisKind::kCount, AxisKind::kPercent}) {
    is_even({kind, 0.1, 0.9}, 0.1, 0.5, 0.9);
  }
  is_even({AxisKind::kLog, 1, 1000}, 2, 20, 200);
  is_even({AxisKind::kLogBytes, 1, 1000}, 3, 12, 48);
  is_even({AxisKind::kSparsity, 0, 0.999}, 0.9, 0.99, 0.999);
  CHECK(PlotScale(AxisKind::kLinear, 0, 2.3).place(0) == 0);
  CHECK(PlotScale(AxisKind::kLinear, 0, 2.3).place(2.5) == 1);
}

TEST_CASE("an axis without a range is still one") {
  const auto kind = GENERATE(AxisKind::kLinear, AxisKind::kCount, AxisKind::kPercent, AxisKind::kLog,
                             AxisKind::kLogBytes, AxisKind::kSparsity);
  const auto at = GENERATE(0.0, 0.5, 1.0, kNoNumber, 1e6);
  const PlotScale scale(kind, at, at);
  CHECK(std::isfinite(scale.place(0.5)));
  CHECK(!scale.ticks().empty());
  CHECK(scale.ticks().size() < 12);
}

TEST_CASE("a figure draws gaps, lone points and hostile names") {
  const auto svg = drawn(plot_of({{1, kNoNumber, 0.5, 0.25, 0.125}}));
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(svg.find("a &lt; b") != std::string::npos);
  CHECK(occurrences(svg, "M74") + occurrences(svg, "M277") == 2);  // a new start after the gap
  CHECK(occurrences(svg, "h0") == 1);                              // the lone first point
  CHECK(svg.find(">0.125</text>") != std::string::npos);           // the last value, beside its end
  CHECK(occurrences(svg, "<circle") == 0);
}

TEST_CASE("a figure marks a curve of a single point") {
  const auto svg = drawn(plot_of({{kNoNumber, 0.5, kNoNumber}, {1, 0.5, 0.25}}));
  CHECK(occurrences(svg, "<circle") == 1);
  CHECK(svg.find("<circle class=\"r0 d0\" cx=\"277.0\" cy=\"145.0\"") != std::string::npos);
}

TEST_CASE("a figure draws levels by their ends") {
  const auto svg = drawn(plot_of({{1, 1, 1, 1, 0, 0, 0, kNoNumber, 0, 0, 0}}));
  CHECK(occurrences(svg, "L") == 4);
  CHECK(svg.find("M74.0,14.0L195.8,14.0L236.4,276.0L317.6,276.0M398.8,276.0L480.0,276.0\"") != std::string::npos);
}

TEST_CASE("a figure without a single number says so") {
  ReportCurves all = plot_of({{kNoNumber}});
  all.plots[0].low = all.plots[0].high = kNoNumber;
  CHECK(drawn(all).find("no data yet") != std::string::npos);
}

TEST_CASE("what a figure is called aloud says that its axis is logarithmic") {
  ReportCurves all = plot_of({{1, 0.5}});
  CHECK(drawn(all).find("aria-label=\"a &lt; b over steps\"") != std::string::npos);
  all.plots[0].kind = AxisKind::kLog;
  CHECK(drawn(all).find("aria-label=\"a &lt; b (log scale) over steps\"") != std::string::npos);
}

TEST_CASE("a noisy curve and its band are drawn smoothed") {
  ReportCurves all = plot_of({{0, 1, 0.5, 0.5, 0.3}});
  all.smoothing = 1;
  CHECK(drawn(all).find(">0.3</text>") != std::string::npos);
  all.plots[0].noisy = true;
  all.plots[0].curves[0].low = {0, 0, 0, 0, 0};
  all.plots[0].curves[0].high = {1, 0, 1, 1, 0.5};
  const auto svg = drawn(all);
  CHECK(svg.find(">0.4</text>") != std::string::npos);      // of 0.5 and 0.3
  CHECK(svg.find("d=\"M74.0,145.0") != std::string::npos);  // of 0 and 1
  CHECK(svg.find("band noise r0 d0\" points=\"74.0,145.0 175.5,101.3 ") != std::string::npos);
  CHECK(svg.find(" 175.5,276.0 74.0,276.0 \"") != std::string::npos);
}

TEST_CASE("twenty-eight curves look different, and their last values do not lie on one another") {
  std::vector<std::vector<double>> curves;
  std::set<std::string> looks;
  for (size_t i = 0; i < 28; ++i) {
    curves.push_back({static_cast<double>(i) / 32});
    looks.insert(curve_class(i));
  }
  CHECK(looks.size() == 28);
  CHECK(looks.contains("r0 d0"));
  CHECK(looks.contains("r6 d3"));
  const auto svg = drawn(plot_of(curves));
  CHECK(occurrences(svg, "class=\"line r6 d3\"") == 1);
  std::vector<double> places;
  for (size_t at = svg.find("class=\"end"); at != std::string::npos; at = svg.find("class=\"end", at + 1)) {
    places.push_back(std::stod(svg.substr(svg.find(" y=\"", at) + 4)));
  }
  CHECK(places.size() == 16);
  for (size_t i = 1; i < places.size(); ++i) CHECK(places[i] - places[i - 1] >= 15);
  CHECK(places.front() > 0);
  CHECK(svg.find(">0</text>") != std::string::npos);  // the least and the greatest are among them
  CHECK(svg.find(">0.8438</text>") != std::string::npos);
  CHECK(occurrences(drawn(plot_of(std::vector<std::vector<double>>(28, {0.55}))), ">0.55</text>") ==
        1);  // of all curves together
}

}  // namespace dgc
