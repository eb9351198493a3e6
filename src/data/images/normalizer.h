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
  std::vector<float> scale_, shift_;
};

}  // namespace dgc
