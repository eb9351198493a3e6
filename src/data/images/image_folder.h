#pragma once

#include <string>
#include <vector>

#include "data/images/image_dataset.h"
#include "data/images/normalizer.h"
#include "data/images/options.h"

namespace dgc {

// Images in ROOT/train/CLASS/*.jpg, .jpeg or .png, and likewise below ROOT/val or ROOT/test. In training, an image gets
// a random-resized-crop and, if wanted, a flip. In evaluation, the shorter side becomes shorter_side(size), and the
// centre is cut out. The constructor reads names only, and read() opens an image.
class ImageFolder final : public ImageDataset {
 public:
  // Reads image_size, augment, class_names and holds_back of the options. Without class_names, the classes are numbered
  // by the sorted names of ROOT/train's folders. Throws UserError that names a missing or empty folder, or one of
  // another class.
  ImageFolder(const std::string& root, Split, const ImageOptions&, Normalizer, const std::string& fix);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  ImageShape shape() const override { return {image_size_, image_size_, 3}; }
  int64_t classes() const override { return static_cast<int64_t>(class_names_.size()); }
  int32_t read(int64_t i, const Draw* draw, float* out) const override;
  std::vector<std::string> remarks() const override;  // on classes without an image, and files that are not read

  std::vector<std::string> class_names() const override { return class_names_; }
  std::string path(int64_t i) const;

 private:
  struct File {
    int32_t label;
    std::string name;
  };

  std::string root_, folder_;  // folder_: ROOT/train, ROOT/val or ROOT/test
  int64_t image_size_;
  AugmentOptions augment_;
  Normalizer normalizer_;
  std::vector<std::string> class_names_;
  std::vector<std::string> missing_;  // classes that the training set has and this one has not
  int64_t not_read_ = 0;
  std::string first_not_read_;
  std::vector<File> files_;
};

}  // namespace dgc
