#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "kernels/backend.h"

namespace dgc {

// A tensor on a backend's device, filled from a vector and read back into one.
class OnDevice {
 public:
  OnDevice(Backend& backend, const std::vector<float>& values)
      : buffer_(backend.device(), values.size() * sizeof(float)), numel_(static_cast<int64_t>(values.size())) {
    buffer_.device().copy_in(buffer_.data(), values.data(), buffer_.bytes());
  }

  View view() const { return {buffer_.data(), {numel_}}; }
  operator View() const { return view(); }
  operator ConstView() const { return view(); }
  std::vector<float> host() const {
    std::vector<float> values(static_cast<size_t>(numel_));
    buffer_.device().synchronize();
    buffer_.device().copy_out(values.data(), buffer_.data(), buffer_.bytes());
    return values;
  }

 private:
  Buffer buffer_;
  int64_t numel_;
};

inline std::vector<float> zeros(int64_t n) { return std::vector<float>(static_cast<size_t>(n)); }

inline std::vector<float> random_floats(int64_t n, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = draw(generator);
  return values;
}

inline std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// Largest |a - b| / max(1, |b|); infinity when the sizes differ or something is not a number.
template <typename T>
double worst_error(const std::vector<float>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::fabs(a[i] - static_cast<double>(b[i])) / std::fmax(1.0, std::fabs(b[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

}  // namespace dgc
