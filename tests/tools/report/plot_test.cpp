#include <algorithm>
#include <catch.hpp>
#include <cmath>
#include <set>

#include "run/metrics.h"
#include "tests/support/run_files.h"
#include "tools/report/plot_scale.h"
#include "tools/report/plot_series.h"
#include "tools/report/svg_plot.h"

namespace dgc {
namespace {

using test::occurrences;

std::vector<std::string> labels(const PlotScale& scale) {
  std::vector<std::string> out;
  for (const Tick& tick : scale.ticks()) out.push_back(tick.label);
  return out;
}

Points noise(int64_t count) {
  Points points;
  for (int64_t i = 0; i < count; ++i) points.push_back({static_cast<double>(i), std::sin(static_cast<double>(i))});
  return points;
}

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

TEST_CASE("places and values of an axis undo each other") {
  const auto kind = GENERATE(AxisKind::kLinear, AxisKind::kCount, AxisKind::kPercent, AxisKind::kLog,
                             AxisKind::kLogBytes, AxisKind::kSparsity);
  const PlotScale scale(kind, 0.1, 0.9);
  for (const double value : {0.1, 0.5, 0.75, 0.9}) CHECK(scale.value(scale.place(value)) == Approx(value));
}

TEST_CASE("an axis without a range is still one") {
  const auto kind = GENERATE(AxisKind::kLinear, AxisKind::kCount, AxisKind::kPercent, AxisKind::kLog,
                             AxisKind::kLogBytes, AxisKind::kSparsity);
  const auto at = GENERATE(0.0, 0.5, 1.0, kNoNumber, 1e6);
  const PlotScale scale(kind, at, at);
  CHECK(scale.low() < scale.high());
  CHECK(!scale.ticks().empty());
  CHECK(scale.ticks().size() < 12);
}

TEST_CASE("an envelope keeps the outliers of a long series") {
  const auto count = GENERATE(0, 1, 99, 100, 101, 100000);
  auto points = noise(count);
  if (count > 50) points[50].y = 77, points[51].y = -77;
  const auto out = envelope(points, 100);
  CHECK(out.size() <= 100);
  CHECK(out.size() >= std::min<size_t>(points.size(), 50));
  CHECK(std::is_sorted(out.begin(), out.end(), [](Point a, Point b) { return a.x < b.x; }));
  if (count > 50) {
    CHECK(std::any_of(out.begin(), out.end(), [](Point p) { return p.y == 77; }));
    CHECK(std::any_of(out.begin(), out.end(), [](Point p) { return p.y == -77; }));
  }
}

TEST_CASE("a moving mean skips what is no number") {
  const Points points = {{0, 1}, {1, kNoNumber}, {2, 3}, {3, 8}, {4, kNoNumber}};
  const auto three = moving_mean(points, 3, 100);
  REQUIRE(three.size() == 5);
  CHECK(three[0].y == 1);
  CHECK(three[1].y == 2);
  CHECK(three[2].y == 5.5);
  CHECK(three[4].y == 8);
  CHECK(std::isnan(moving_mean(points, 0, 100)[1].y));
  CHECK(moving_mean(noise(100000), 1000, 500).size() == 500);
  CHECK(moving_mean({}, 3, 100).empty());
  CHECK(moving_mean({{5, 2}}, 3, 100).at(0).y == 2);
}

TEST_CASE("stairs keep their edges") {
  Points points;
  for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), i < 400 ? 1.0 : 2.0});
  const auto out = levels(points, 100);
  REQUIRE(out.size() == 4);
  CHECK(out[1].x == 399);
  CHECK(out[2].x == 400);
  CHECK(levels(noise(100000), 100).size() <= 100);
}

TEST_CASE("a figure draws gaps, lone points and hostile names") {
  Plot plot;
  plot.title = "a < b";
  plot.x_label = "steps";
  plot.x_high = 4;
  plot.curves.push_back({.name = "\"><script>", .line = {{0, 1}, {1, kNoNumber}, {2, 0.5}, {3, 0.25}}, .faint = {}});
  const auto svg = svg_plot(plot);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(svg.find("a &lt; b") != std::string::npos);
  CHECK(occurrences(svg, "M74") + occurrences(svg, "M277") == 2);  // a new start after the gap
  CHECK(occurrences(svg, "h0") == 1);                              // the lone first point
  CHECK(svg.find(">0.25</text>") != std::string::npos);            // the last value, beside its end
}

TEST_CASE("a figure without a single number says so") {
  Plot plot;
  plot.x_label = "epochs";
  plot.curves.push_back({.name = "x", .line = {{0, kNoNumber}}, .faint = {}});
  CHECK(svg_plot(plot).find("no data yet") != std::string::npos);
}

TEST_CASE("twenty-eight curves look different, and their last values do not lie on one another") {
  Plot plot;
  plot.x_label = "steps";
  std::set<std::string> looks;
  for (size_t i = 0; i < 28; ++i) {
    plot.curves.push_back({.name = "x", .look = i, .line = {{1, static_cast<double>(i) / 28}}, .faint = {}});
    looks.insert(curve_class(i));
  }
  CHECK(looks.size() == 28);
  CHECK(looks.contains("r0 d0"));
  CHECK(looks.contains("r6 d3"));
  const auto svg = svg_plot(plot);
  CHECK(occurrences(svg, "class=\"line r6 d3\"") == 1);
  std::vector<double> places;
  for (size_t at = svg.find("class=\"end"); at != std::string::npos; at = svg.find("class=\"end", at + 1)) {
    places.push_back(std::stod(svg.substr(svg.find(" y=\"", at) + 4)));
  }
  REQUIRE(places.size() > 10);
  for (size_t i = 1; i < places.size(); ++i) CHECK(places[i] - places[i - 1] >= 15);
  CHECK(places.front() > 0);
  for (Curve& curve : plot.curves) curve.line = {{1, 0.5}};
  CHECK(occurrences(svg_plot(plot), ">0.5</text>") == 1);  // of all curves together
}

}  // namespace dgc
