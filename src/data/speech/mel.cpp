#include "data/speech/mel.h"

#include <algorithm>
#include <cmath>

#include "tensor/errors.h"

namespace dgc {

double mel_of(double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); }
double hertz_of(double mel) { return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0); }

MelFilters::MelFilters(int64_t count, int64_t transform, int64_t sample_rate) : filters_(static_cast<size_t>(count)) {
  DGC_CHECK(count >= 1 && transform >= 2 && sample_rate >= 1, "mel filters");
  const double top = mel_of(static_cast<double>(sample_rate) / 2.0);
  const auto corner = [&](int64_t i) {
    return hertz_of(top * static_cast<double>(i) / static_cast<double>(count + 1));
  };
  for (int64_t m = 0; m < count; ++m) {
    Filter& filter = filters_[static_cast<size_t>(m)];
    const double left = corner(m), centre = corner(m + 1), right = corner(m + 2);
    for (int64_t k = 0; k <= transform / 2; ++k) {
      const double hertz = static_cast<double>(k) * static_cast<double>(sample_rate) / static_cast<double>(transform);
      const double weight = std::min((hertz - left) / (centre - left), (right - hertz) / (right - centre));
      if (weight <= 0) continue;
      if (filter.weights.empty()) filter.first_bin = static_cast<size_t>(k);
      filter.weights.push_back(static_cast<float>(weight));
    }
    if (filter.weights.empty()) {
      throw KeyError("data.features.mels",
                     fmt::format("of {} filters, number {} is so narrow that no frequency of a window of {} samples "
                                 "falls into it; take fewer, or a longer window",
                                 count, m + 1, transform));
    }
  }
}

void MelFilters::apply(const float* power, float* out) const {
  for (const Filter& filter : filters_) {
    float sum = 0;
    for (size_t i = 0; i < filter.weights.size(); ++i) sum += filter.weights[i] * power[filter.first_bin + i];
    *out++ = sum;
  }
}

}  // namespace dgc
