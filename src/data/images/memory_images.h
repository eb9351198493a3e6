#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/images/image_dataset.h"
#include "data/images/normalizer.h"
#include "data/images/options.h"

namespace dgc {

// The sizes of a known set, whose images are squares of `side` pixels.
struct SmallImages {
  int64_t side, channels, classes;
};

// Images of 8-bit pixels and their labels, as a reader leaves them.
struct ImageTable {
  ImageShape shape;
  int64_t classes = 0;
  std::vector<uint8_t> pixels;             // [images, height, width, channels]
  std::vector<uint8_t> labels;             // [images], each below classes
  std::vector<std::string> class_names{};  // [classes], or empty
};

// Small images held in memory. Padding is with raw zeros, BEFORE normalisation, as torchvision's RandomCrop does.
class MemoryImages final : public ImageDataset {
 public:
  // pad_to: see ImageOptions. Throws UserError where it is less than a side of the images.
  MemoryImages(ImageTable table, const AugmentOptions&, Normalizer, int64_t pad_to);

  int64_t size() const override { return static_cast<int64_t>(table_.labels.size()); }
  ImageShape shape() const override { return shape_; }
  int64_t classes() const override { return table_.classes; }
  std::vector<std::string> class_names() const override { return table_.class_names; }
  int32_t read(int64_t i, const Draw* draw, float* out) const override;

 private:
  ImageTable table_;
  AugmentOptions augment_;
  Normalizer normalizer_;
  ImageShape shape_;
};

}  // namespace dgc
