#include "data/normalizer.h"

#include <cmath>
#include <string>

#include "tensor/errors.h"

namespace dgc {
namespace {

std::vector<double> per_channel(const char* key, const std::vector<float>& given, const std::vector<float>& usual,
                                int64_t channels) {
  const std::vector<float>& from = given.empty() ? usual : given;
  const auto count = static_cast<size_t>(channels);
  if (from.size() == 1) return std::vector<double>(count, static_cast<double>(from[0]));
  if (from.size() != count) {
    throw_user_error("data.normalize.{}: {} values for images of {} channels; give one, or one per channel", key,
                     from.size(), channels);
  }
  return {from.begin(), from.end()};
}

}  // namespace

Normalizer::Normalizer(const NormalizeOptions& options, const NormalizeOptions& defaults, int64_t channels)
    : mean_(per_channel("mean", options.mean, defaults.mean, channels)),
      std_(per_channel("std", options.std, defaults.std, channels)) {
  for (size_t c = 0; c < mean_.size(); ++c) {
    if (!std::isfinite(mean_[c])) throw_user_error("data.normalize.mean: {} is not a finite number", mean_[c]);
    if (!std::isfinite(std_[c]) || std_[c] <= 0) throw_user_error("data.normalize.std: {} is not positive", std_[c]);
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
