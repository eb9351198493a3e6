#include "data/speech/spectrum.h"

#include <kiss_fftr.h>

#include <cmath>
#include <numbers>

#include "tensor/errors.h"

namespace dgc {

struct Spectrum::Transform {
  explicit Transform(int64_t size)
      : plan(kiss_fftr_alloc(static_cast<int>(size), 0, nullptr, nullptr)), out(static_cast<size_t>(size / 2 + 1)) {
    DGC_CHECK(plan != nullptr, "a transform's plan");
  }
  ~Transform() { kiss_fftr_free(plan); }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  kiss_fftr_cfg plan;
  std::vector<kiss_fft_cpx> out;
};

Spectrum::Spectrum(int64_t window)
    : weights_(static_cast<size_t>(window)), weighted_(static_cast<size_t>(window + window % 2)) {
  DGC_CHECK(window >= 2 && window < (1 << 20), "samples of a window");
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double turn = static_cast<double>(i) / static_cast<double>(window);
    weights_[i] = static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * turn));
  }
  transform_ = std::make_unique<Transform>(size());
}

Spectrum::~Spectrum() = default;
Spectrum::Spectrum(Spectrum&&) noexcept = default;

void Spectrum::power(const float* samples, float* out) {
  for (size_t i = 0; i < weights_.size(); ++i) weighted_[i] = weights_[i] * samples[i];
  kiss_fftr(transform_->plan, weighted_.data(), transform_->out.data());
  for (const kiss_fft_cpx& x : transform_->out) *out++ = x.r * x.r + x.i * x.i;
}

}  // namespace dgc
