#include "tools/report/statistics.h"

#include <catch.hpp>
#include <cmath>
#include <limits>

namespace dgc {
namespace {

// The area under the density of Student's t distribution from 0 to t, by Simpson's rule.
double area(double t, double degrees) {
  const double scale = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) / std::sqrt(M_PI * degrees);
  const auto density = [&](double x) { return scale * std::pow(1 + x * x / degrees, -(degrees + 1) / 2); };
  constexpr int kParts = 20000;
  const double width = t / kParts;
  double sum = density(0) + density(t);
  for (int i = 1; i < kParts; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(i * width);
  return sum * width / 3;
}

}  // namespace

TEST_CASE("mean and deviation leave out what is not a number") {
  const Sample sample = sample_of({1, 2, std::numeric_limits<double>::quiet_NaN(), 6});
  CHECK(sample.count == 3);
  CHECK(sample.mean == Approx(3));
  CHECK(sample.deviation == Approx(std::sqrt(7.0)));
  CHECK(std::isnan(sample_of({}).mean));
  CHECK(sample_of({5}).mean == 5);
  CHECK(std::isnan(sample_of({5}).deviation));
  CHECK(std::isnan(confidence_95(sample_of({5}))));
}

TEST_CASE("95 % of Student's t distribution lie within the interval") {
  for (size_t count = 2; count <= 31; ++count) {
    const Sample sample{count, 0, std::sqrt(static_cast<double>(count))};  // so that the interval is the table's entry
    INFO(count);
    CHECK(2 * area(confidence_95(sample), static_cast<double>(count - 1)) == Approx(0.95).margin(1e-4));
  }
  CHECK(confidence_95({1000, 0, std::sqrt(1000.0)}) == Approx(2.042));
}

}  // namespace dgc
