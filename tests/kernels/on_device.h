#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/backend.h"
#include "tensor/half.h"

namespace dgc {

// A tensor on a backend's device, filled from a vector and read back into one: of type T in between, fp32 by default.
class OnDevice {
 public:
  OnDevice(Backend& backend, const std::vector<float>& values, DType type = DType::f32)
      : buffer_(backend.device(), values.size() * dtype_size(type)),
        numel_(static_cast<int64_t>(values.size())),
        type_(type) {
    const void* from = values.data();
    std::vector<uint16_t> halves;
    if (type != DType::f32) {
      for (const float value : values) halves.push_back(narrow(value));
      from = halves.data();
    }
    buffer_.device().copy_in(buffer_.data(), from, buffer_.bytes());
  }

  View view() const { return {buffer_.data(), {numel_}, type_}; }
  operator View() const { return view(); }
  operator ConstView() const { return view(); }
  // Elements from `first` on, which then start anywhere.
  View from(int64_t first) const {
    return {static_cast<std::byte*>(buffer_.data()) + static_cast<size_t>(first) * dtype_size(type_),
            {numel_ - first},
            type_};
  }
  std::vector<float> host() const {
    std::vector<float> values(static_cast<size_t>(numel_));
    std::vector<uint16_t> halves(values.size());
    void* const to = type_ == DType::f32 ? static_cast<void*>(values.data()) : halves.data();
    buffer_.device().synchronize();
    buffer_.device().copy_out(to, buffer_.data(), buffer_.bytes());
    if (type_ != DType::f32) std::ranges::transform(halves, values.begin(), [this](uint16_t h) { return widen(h); });
    return values;
  }

 private:
  uint16_t narrow(float value) const {
    if (type_ == DType::f16) return float_to_half(value);
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);  // bf16, to nearest even
  }
  float widen(uint16_t half) const {
    return type_ == DType::f16 ? half_to_float(half) : std::bit_cast<float>(uint32_t{half} << 16);
  }

  Buffer buffer_;
  int64_t numel_;
  DType type_;
};

// Some plain values on a backend's device.
template <typename T>
class ValuesOnDevice {
 public:
  ValuesOnDevice(Backend& backend, std::vector<T> values)
      : buffer_(backend.device(), values.size() * sizeof(T)), size_(values.size()) {
    buffer_.device().copy_in(buffer_.data(), values.data(), buffer_.bytes());
  }
  T* data() const { return static_cast<T*>(buffer_.data()); }
  std::vector<T> host() const {
    std::vector<T> values(size_);
    buffer_.device().synchronize();
    buffer_.device().copy_out(values.data(), buffer_.data(), buffer_.bytes());
    return values;
  }

 private:
  Buffer buffer_;
  size_t size_;
};

// Half a unit in the last place of a number of that type, relative to it, with a little room.
inline double rounding(DType type) { return type == DType::f16 ? 5e-4 : type == DType::bf16 ? 4e-3 : 1e-7; }

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
