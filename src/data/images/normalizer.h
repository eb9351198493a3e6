#pragma once

#include <cstdint>
#include <vector>

#include "data/images/options.h"

namespace dgc {

// y = (pixel / 255 - mean) / std per channel. Whole pixels have a table.
class Normalizer {
 public:
  explicit Normalizer(const NormalizeOptions&);

  int64_t channels() const { return static_cast<int64_t>(mean_.size()); }
  // 256 values for each channel, one channel after the other.
  const float* table() const { return table_.data(); }
  // Works in place, for pixels that a resize has made fractional. values: [pixels, channels] in 0 ... 255.
  void apply(float* values, int64_t pixels) const;

 private:
  std::vector<double> mean_, std_;
  std::vector<float> table_;
  // Those of each channel, again and again for kPixels pixels, so that one loop over numbers is enough.
  static constexpr int kPixels = 16;
  std::vector<float> scale_, shift_;
};

}  // namespace dgc
