#include "data/images/synthetic.h"

#include <algorithm>

#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr int64_t kGrid = 4;
constexpr int64_t kMostNumbers = 1 << 26;  // limit for the values of an image, and for those of all patterns
constexpr uint32_t kShifts = 1 << 14;      // number of different stretches of noise

}  // namespace

SyntheticImages::SyntheticImages(const SyntheticOptions& o, Split split)
    : shape_{o.height, o.width, o.channels},
      size_(split == Split::train ? o.train_samples : o.test_samples),
      classes_(o.classes),
      shifts_(o.seed, rng_stream("synthetic shift", split == Split::train ? "train" : "test")) {
  DGC_CHECK(std::min({shape_.height, shape_.width, shape_.channels, size_, classes_}) >= 1, "sizes of a set");
  if (shape_.numel() > kMostNumbers) {
    throw_user_error("data.height, data.width and data.channels: {}x{}x{} are more than the {} numbers of an image",
                     shape_.height, shape_.width, shape_.channels, kMostNumbers);
  }
  if (classes_ * kGrid * kGrid * shape_.channels > kMostNumbers) {
    throw_user_error(
        "data.classes and data.channels: patterns for {} classes with {} channels are more than {} numbers", classes_,
        shape_.channels, kMostNumbers);
  }
  const Philox patterns(o.seed, rng_stream("synthetic", "patterns"));
  cells_.resize(static_cast<size_t>(classes_ * kGrid * kGrid * shape_.channels));
  for (size_t i = 0; i < cells_.size(); ++i) cells_[i] = patterns.normal(i);
  const Philox noise(o.seed, rng_stream("synthetic", "noise"));
  noise_.resize(static_cast<size_t>(shape_.numel()) + kShifts);
  for (size_t i = 0; i < noise_.size(); ++i) noise_[i] = static_cast<float>(o.noise) * noise.normal(i);
}

int32_t SyntheticImages::read(int64_t i, const Draw*, float* out) const {
  DGC_CHECK(i >= 0 && i < size_, "sample index");
  const int64_t label = i % classes_, channels = shape_.channels;
  const float* noise = noise_.data() + shifts_.below(static_cast<uint64_t>(i), kShifts);
  for (int64_t y = 0; y < shape_.height; ++y) {
    const float* row = cells_.data() + (label * kGrid + y * kGrid / shape_.height) * kGrid * channels;
    for (int64_t x = 0; x < shape_.width; ++x) {
      const float* cell = row + x * kGrid / shape_.width * channels;
      for (int64_t c = 0; c < channels; ++c) *out++ = cell[c] + *noise++;
    }
  }
  return static_cast<int32_t>(label);
}

}  // namespace dgc
