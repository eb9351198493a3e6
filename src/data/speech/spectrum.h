#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace dgc {

// Power spectra of stretches of `window` samples under a periodic Hann window, w[i] = (1 - cos(2 pi i / window)) / 2.
// The transform is as long as the window, or one sample (a zero) longer if the window is odd. Not safe to use from
// several threads at once.
class Spectrum {
 public:
  explicit Spectrum(int64_t window);  // window: at least 2
  ~Spectrum();
  Spectrum(Spectrum&&) noexcept;

  int64_t window() const { return static_cast<int64_t>(weights_.size()); }
  int64_t size() const { return static_cast<int64_t>(weighted_.size()); }  // samples of the transform
  int64_t bins() const { return size() / 2 + 1; }                          // bin k: k * rate / size() Hz
  // |X[k]|^2 of samples[0 ... window), X[k] = sum over i of w[i] samples[i] exp(-2 pi j i k / size()).
  void power(const float* samples, float* out);

 private:
  struct Transform;
  std::vector<float> weights_, weighted_;
  std::unique_ptr<Transform> transform_;
};

}  // namespace dgc
