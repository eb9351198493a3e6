#pragma once

#include <chrono>
#include <cmath>
#include <thread>

#include "data/images/image_dataset.h"

// Image sets that a test alters.
namespace dgc::test {

// The images of another set, which must outlive this one. Derived classes alter what is read.
class AlteredImages : public ImageDataset {
 public:
  explicit AlteredImages(const ImageDataset& good) : good_(good) {}
  int64_t size() const override { return good_.size(); }
  ImageShape shape() const override { return good_.shape(); }
  int64_t classes() const override { return good_.classes(); }
  int32_t read(int64_t i, const Draw* draw, float* out) const override { return good_.read(i, draw, out); }

 private:
  const ImageDataset& good_;
};

// One sample's first pixel is NaN.
class Poisoned final : public AlteredImages {
 public:
  Poisoned(const ImageDataset& good, int64_t sample) : AlteredImages(good), sample_(sample) {}
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    const int32_t label = AlteredImages::read(i, draw, out);
    if (i == sample_) out[0] = std::nanf("");
    return label;
  }

 private:
  int64_t sample_;
};

// A sample takes its time.
class Slow final : public AlteredImages {
 public:
  using AlteredImages::AlteredImages;
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return AlteredImages::read(i, draw, out);
  }
};

// One sample, so many times.
class Same final : public AlteredImages {
 public:
  using AlteredImages::AlteredImages;
  int32_t read(int64_t, const Draw*, float* out) const override { return AlteredImages::read(0, nullptr, out); }
};

}  // namespace dgc::test
