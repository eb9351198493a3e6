#pragma once

#include <sndfile.h>

#include <cmath>
#include <numbers>

#include "tests/data/fixtures.h"

// Sound files made by libsndfile itself.
namespace dgc {

struct SoundKind {
  int rate = 16000, channels = 1;
  int format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
};

inline std::vector<float> sine(double hertz, int rate, size_t count, double amplitude = 0.5) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) {
    const double turns = hertz * static_cast<double>(i) / rate;
    out[i] = static_cast<float>(amplitude * std::sin(2 * std::numbers::pi * turns));
  }
  return out;
}

// samples: of all channels, interleaved. Returns the path.
inline std::string write_sound(const TempFolder& folder, const std::string& name, const std::vector<float>& samples,
                               const SoundKind& kind = {}) {
  const std::string path = folder.write(name, {});
  SF_INFO info{};
  info.samplerate = kind.rate;
  info.channels = kind.channels;
  info.format = kind.format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file != nullptr);
  REQUIRE(sf_write_float(file, samples.data(), std::ssize(samples)) == std::ssize(samples));
  REQUIRE(sf_close(file) == 0);
  return path;
}

inline Bytes bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace dgc
