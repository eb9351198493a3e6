#include "data/speech/features.h"

#include <cmath>

#include "tensor/counted.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Added to a power so that the logarithm of silence is finite: about what rounding to 16 bits leaves in a bin.
constexpr float kFloor = 1e-8f;

int64_t samples_of(const char* key, double ms, int64_t rate) {
  const auto samples = static_cast<int64_t>(std::llround(ms * 1e-3 * static_cast<double>(rate)));
  if (!(samples >= 2 && samples < (1 << 20))) {
    throw KeyError(fmt::format("data.features.{}", key),
                   fmt::format("{} ms are {} at {} Hz; give at least 2", ms, counted(samples, "sample"), rate));
  }
  return samples;
}

struct Column {
  int64_t stride = 1, count = 0;
};

// Takes two passes in double, because one pass would lose the deviation of a loud but steady feature.
void scale(float* values, const Column& column) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < column.count; ++i) sum += values[i * column.stride];
  const double mean = sum / static_cast<double>(column.count);
  for (int64_t i = 0; i < column.count; ++i) {
    const double d = values[i * column.stride] - mean;
    squares += d * d;
  }
  const double deviation = std::sqrt(squares / static_cast<double>(column.count));
  const double factor = deviation > 1e-5 ? 1 / deviation : 0;
  for (int64_t i = 0; i < column.count; ++i) {
    float& value = values[i * column.stride];
    value = static_cast<float>((value - mean) * factor);
  }
}

}  // namespace

FeatureExtractor::FeatureExtractor(const FeatureOptions& o, int64_t sample_rate)
    : options_(o),
      step_(static_cast<double>(samples_of("step_ms", o.step_ms, sample_rate))),
      spectrum_(samples_of("window_ms", o.window_ms, sample_rate)),
      power_(static_cast<size_t>(spectrum_.bins())) {
  if (o.kind == FeatureKind::log_mel) mel_.emplace(o.mels, spectrum_.size(), sample_rate);
}

int64_t FeatureExtractor::features() const { return mel_ ? mel_->count() : spectrum_.bins(); }

int64_t FeatureExtractor::frames(int64_t samples, double tempo) const {
  if (samples < window()) return 0;
  return 1 + static_cast<int64_t>(std::floor(static_cast<double>(samples - window()) / (step_ * tempo)));
}

void FeatureExtractor::compute(std::span<const float> samples, double tempo, std::vector<float>& out) {
  DGC_CHECK(tempo > 0, "tempo");
  const int64_t rows = frames(std::ssize(samples), tempo), columns = features();
  out.resize(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    // Even rounded, the place is at most samples - window.
    const auto at = std::llround(static_cast<double>(row) * step_ * tempo);
    float* to = out.data() + row * columns;
    spectrum_.power(samples.data() + at, power_.data());
    if (mel_) {
      mel_->apply(power_.data(), to);
      for (int64_t i = 0; i < columns; ++i) to[i] = std::log(kFloor + to[i]);
    } else {
      for (int64_t i = 0; i < columns; ++i) to[i] = std::log1p(std::sqrt(power_[static_cast<size_t>(i)]));
    }
  }
  if (rows > 0) scale_features(options_.scaling, columns, out);
}

void scale_features(FeatureScaling scaling, int64_t columns, std::vector<float>& values) {
  if (scaling == FeatureScaling::utterance) return scale(values.data(), {1, std::ssize(values)});
  for (int64_t c = 0; c < columns; ++c) scale(values.data() + c, {columns, std::ssize(values) / columns});
}

}  // namespace dgc
