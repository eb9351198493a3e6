#pragma once

#include <catch.hpp>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "paths.h"
#include "run/file_io.h"
#include "run/safetensors.h"
#include "tests/support/hashed.h"

// What PyTorch computed in float64 (tests/reference/make_dumps.py), and how to compare with it.
namespace dgc {

constexpr double kTolerance = 1e-4;
constexpr size_t kSample = 128;

class Dump {
 public:
  explicit Dump(const std::string& file)
      : file_(read_file(DGC_SOURCE_DIR "/tests/reference/" + file), file), device_(make_cpu_device()) {}

  std::vector<float> load(const std::string& tensor, const Shape& shape) const {
    std::vector<float> values(static_cast<size_t>(shape.numel()));
    file_.load(tensor, {values.data(), shape}, *device_);
    return values;
  }

 private:
  SafetensorsFile file_;
  std::shared_ptr<Device> device_;
};

// |ours - truth| / |truth|
inline double apart(std::span<const float> ours, std::span<const float> truth) {
  REQUIRE(ours.size() == truth.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double d = static_cast<double>(ours[i]) - static_cast<double>(truth[i]);
    difference += d * d;
    norm += static_cast<double>(truth[i]) * static_cast<double>(truth[i]);
  }
  return std::sqrt(difference / norm);
}

inline float norm_of(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return static_cast<float>(std::sqrt(sum));
}

// make_dumps.py's: all of a small tensor, random elements of a large one.
inline std::vector<float> sample_of(std::span<const float> x) {
  if (x.size() <= kSample) return {x.begin(), x.end()};
  std::vector<float> sample;
  for (size_t j = 0; j < kSample; ++j) sample.push_back(x[hashed::bits("sample", j) * x.size() >> 32]);
  return sample;
}

}  // namespace dgc
