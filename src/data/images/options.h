#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dgc {

// What training does to an image; evaluation never does.
struct AugmentOptions {
  int pad_crop = 0;   // pad every side with this many raw zeros, then cut the image's size out at a random place
  bool flip = false;  // mirror left to right, every second time
  // image_folder only: the random-resized-crop's share of the image's area, and its width / height.
  float min_scale = 0.08f, max_scale = 1.f;
  float min_ratio = 3.f / 4.f, max_ratio = 4.f / 3.f;
};

// y = (pixel / 255 - mean) / std, with a positive std: a value of each for every channel.
struct NormalizeOptions {
  std::vector<float> mean, std;
};

// Images made of a pattern per class plus noise: for benchmarks and tests.
struct SyntheticOptions {
  int64_t train_samples = 1024, test_samples = 256;
  int64_t height = 32, width = 32, channels = 3, classes = 10;
  float noise = 1.f;  // standard deviation; the patterns have deviation 1
  uint64_t seed = 1;
};

}  // namespace dgc
