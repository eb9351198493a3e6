#pragma once

#include <cmath>

#include "data/images/image_dataset.h"

namespace dgc::test {

// One sample's first pixel is NaN.
class Poisoned final : public ImageDataset {
 public:
  Poisoned(const ImageDataset& good, int64_t sample) : good_(good), sample_(sample) {}
  int64_t size() const override { return good_.size(); }
  ImageShape shape() const override { return good_.shape(); }
  int64_t classes() const override { return good_.classes(); }
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    const int32_t label = good_.read(i, draw, out);
    if (i == sample_) out[0] = std::nanf("");
    return label;
  }

 private:
  const ImageDataset& good_;
  int64_t sample_;
};

}  // namespace dgc::test
