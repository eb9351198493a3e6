#include "data/images/normalizer.h"

#include <algorithm>
#include <cmath>

#include "tensor/errors.h"

namespace dgc {

Normalizer::Normalizer(const NormalizeOptions& o)
    : mean_(o.mean.begin(), o.mean.end()), std_(o.std.begin(), o.std.end()) {
  DGC_CHECK(!mean_.empty() && mean_.size() == std_.size(), "a mean and a deviation for each channel");
  for (size_t c = 0; c < mean_.size(); ++c) {
    DGC_CHECK(std::isfinite(mean_[c]) && std::isfinite(std_[c]) && std_[c] > 0, "a deviation that divides");
    for (int v = 0; v < 256; ++v) table_.push_back(static_cast<float>((v / 255.0 - mean_[c]) / std_[c]));
  }
  for (int pixel = 0; pixel < kPixels; ++pixel) {
    for (size_t c = 0; c < mean_.size(); ++c) {
      scale_.push_back(static_cast<float>(1.0 / (255.0 * std_[c])));
      shift_.push_back(static_cast<float>(-mean_[c] / std_[c]));
    }
  }
}

void Normalizer::apply(float* values, int64_t pixels) const {
  const float *scale = scale_.data(), *shift = shift_.data();
  const int64_t together = std::ssize(scale_), count = pixels * channels();
  for (int64_t first = 0; first < count; first += together, values += together) {
    const int64_t here = std::min(together, count - first);
    for (int64_t i = 0; i < here; ++i) values[i] = values[i] * scale[i] + shift[i];
  }
}

}  // namespace dgc
