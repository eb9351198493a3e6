#include "data/images/normalizer.h"

#include <cmath>

#include "tensor/errors.h"

namespace dgc {

Normalizer::Normalizer(const NormalizeOptions& o)
    : mean_(o.mean.begin(), o.mean.end()), std_(o.std.begin(), o.std.end()) {
  DGC_CHECK(!mean_.empty() && mean_.size() == std_.size(), "a mean and a deviation for each channel");
  for (size_t c = 0; c < mean_.size(); ++c) {
    DGC_CHECK(std::isfinite(mean_[c]) && std::isfinite(std_[c]) && std_[c] > 0, "a deviation that divides");
    for (int v = 0; v < 256; ++v) table_.push_back(static_cast<float>((v / 255.0 - mean_[c]) / std_[c]));
    scale_.push_back(static_cast<float>(1.0 / (255.0 * std_[c])));
    shift_.push_back(static_cast<float>(-mean_[c] / std_[c]));
  }
}

void Normalizer::apply(float* values, int64_t pixels) const {
  const size_t channels = mean_.size();
  for (int64_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < channels; ++c) values[c] = values[c] * scale_[c] + shift_[c];
    values += channels;
  }
}

}  // namespace dgc
