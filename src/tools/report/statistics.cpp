#include "tools/report/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace dgc {
namespace {

// The 97.5 % points of Student's t distribution with 1, 2, ... degrees of freedom: NIST/SEMATECH, e-Handbook of
// Statistical Methods, section 1.3.6.7.2.
constexpr std::array kStudent = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

// Beyond the table the last entry is used, which makes an interval at most 4.2 % too wide.
double student(size_t degrees) { return kStudent.at(std::min(degrees, kStudent.size()) - 1); }

}  // namespace

Sample sample_of(const std::vector<double>& values) {
  Sample sample;
  double sum = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++sample.count;
  }
  const auto count = static_cast<double>(sample.count);
  sample.mean = sample.count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / count;
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - sample.mean) * (value - sample.mean);
  }
  sample.deviation = sample.count < 2 ? std::numeric_limits<double>::quiet_NaN() : std::sqrt(squares / (count - 1));
  return sample;
}

double confidence_95(const Sample& sample) {
  if (sample.count < 2) return std::numeric_limits<double>::quiet_NaN();
  return student(sample.count - 1) * sample.deviation / std::sqrt(static_cast<double>(sample.count));
}

}  // namespace dgc
