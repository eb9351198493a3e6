#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dgc {

// What training does to an image; evaluation never does.
struct AugmentOptions {
  int64_t pad_crop = 0;  // pad every side with this many raw zeros, then cut the image's size out at a random place
  bool flip = false;     // mirror left to right with probability 1/2
  // image_folder only: the random-resized-crop's share of the image's area, and its width / height.
  double min_scale = 0.08, max_scale = 1;
  double min_ratio = 0.75, max_ratio = 4.0 / 3.0;
  bool operator==(const AugmentOptions&) const = default;
};

// y = (pixel / 255 - mean) / std, with one mean and one positive std per channel.
struct NormalizeOptions {
  std::vector<float> mean, std;
};

// Images made of a pattern per class plus noise: for benchmarks and tests.
struct SyntheticOptions {
  int64_t train_samples = 1024, test_samples = 256;
  int64_t height = 32, width = 32, channels = 3, classes = 10;
  double noise = 1;  // standard deviation; the patterns have deviation 1
  uint64_t seed = 1;
  bool operator==(const SyntheticOptions&) const = default;
};

// Options of all sets of images.
struct ImageOptions {
  AugmentOptions augment{};
  int64_t pad_to = 0;  // mnist, fashion_mnist, cifar10: raw zeros around the image up to this side; 0: no zeros
  std::vector<int64_t> only_classes{};  // the same sets: images of these classes alone, numbered anew; empty: all
  int64_t image_size = 224;             // image_folder: side of the square that read() writes
  // image_folder: its classes in their order, as a run has learnt them; empty: the folders of ROOT/train
  std::vector<std::string> class_names{};
  bool holds_back = false;  // image_folder: data.validation_split is above 0, which people take for a test set
  SyntheticOptions synthetic{};
  bool operator==(const ImageOptions&) const = default;
};

}  // namespace dgc
