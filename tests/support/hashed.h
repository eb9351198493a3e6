#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/params.h"

// Numbers that C++ and tests/reference/hashed.py both make from a name and an index, so that no input has to be stored.
namespace dgc::hashed {

// FNV-1a of the name, then MurmurHash3's finalizer over index * golden ratio + that.
inline uint32_t bits(std::string_view name, uint64_t index) {
  uint32_t h = 0x811C9DC5u;
  for (const char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x01000193u;
  h += static_cast<uint32_t>(index) * 0x9E3779B9u;
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}

// In [centre - scale, centre + scale), by two float roundings.
inline float uniform(std::string_view name, uint64_t index, float scale, float centre = 0) {
  const float unit = static_cast<float>(static_cast<int32_t>(bits(name, index) >> 8) - (1 << 23)) * 0x1p-23f;
  const float scaled = unit * scale;
  return scaled + centre;
}

// Python counts an image's elements as [batch, channels, height, width]; here they lie as [batch, height, width,
// channels].
inline std::vector<float> images(const std::string& name, int64_t batch, int64_t size) {
  std::vector<float> out;
  const float deviation = static_cast<float>(std::sqrt(3.0));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t pixel = 0; pixel < size * size; ++pixel) {
      for (int64_t c = 0; c < 3; ++c) {
        out.push_back(uniform(name, static_cast<uint64_t>((b * 3 + c) * size * size + pixel), deviation));
      }
    }
  }
  return out;
}

inline std::vector<int32_t> labels(const std::string& name, int64_t batch, uint32_t classes) {
  std::vector<int32_t> out;
  for (int64_t b = 0; b < batch; ++b) {
    out.push_back(static_cast<int32_t>(bits(name, static_cast<uint64_t>(b)) % classes));
  }
  return out;
}

struct NormFill {
  float weight = 1, bias = 0, spread = 0.25f;
};

// Weights and statistics as hashed.py's fill() leaves them.
inline void fill(const Arena& arena, const NormFill& norm = {}) {
  for (int i = 0; i < arena.layout().size(); ++i) {
    const ParamSpec& spec = arena.layout().spec(i);
    const std::string& name = spec.name;
    float scale = norm.spread, centre = name.ends_with("weight") ? norm.weight : norm.bias;
    if (spec.shape.rank() > 1) {
      const auto fan_in = static_cast<double>(spec.shape.numel() / spec.shape[0]);
      scale = static_cast<float>(std::sqrt(6.0 / fan_in));
      centre = 0;
    } else if (name.starts_with("fc")) {
      scale = 0.25f;
      centre = 0;
    } else if (name.ends_with("running_mean") || name.ends_with("running_var")) {
      scale = 0.25f;
      centre = name.ends_with("running_var") ? 1 : 0;
    }
    std::vector<float> values(static_cast<size_t>(spec.shape.numel()));
    for (size_t j = 0; j < values.size(); ++j) values[j] = uniform(name, j, scale, centre);
    arena.device().copy_in(arena.view(i).data, values.data(), values.size() * sizeof(float));
  }
}

}  // namespace dgc::hashed
