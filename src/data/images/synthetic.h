#pragma once

#include <cstdint>
#include <vector>

#include "data/images/image_dataset.h"
#include "data/images/options.h"

namespace dgc {

// Image i belongs to class i % classes and is the class's pattern, a coarse grid of normal random values, plus noise.
// Both splits share the patterns. A value costs one addition, so that a benchmark measures the training and not the
// data.
class SyntheticImages final : public ImageDataset {
 public:
  SyntheticImages(const SyntheticOptions&, Split);  // throws UserError for sizes that together are too large

  int64_t size() const override { return size_; }
  ImageShape shape() const override { return shape_; }
  int64_t classes() const override { return classes_; }
  int32_t read(int64_t i, const Draw* draw, float* out) const override;

 private:
  ImageShape shape_;
  int64_t size_, classes_;
  Philox shifts_;
  std::vector<float> cells_;  // [classes, kGrid, kGrid, channels]
  std::vector<float> noise_;  // a sample's noise is a stretch of this
};

}  // namespace dgc
