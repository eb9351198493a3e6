#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/images/image_dataset.h"

namespace dgc {

// Some images of another set, by their numbers there.
class ChosenImages final : public ImageDataset {
 public:
  ChosenImages(std::shared_ptr<const ImageDataset> all, std::vector<int32_t> chosen)
      : all_(std::move(all)), chosen_(std::move(chosen)) {}

  int64_t size() const override { return static_cast<int64_t>(chosen_.size()); }
  ImageShape shape() const override { return all_->shape(); }
  int64_t classes() const override { return all_->classes(); }
  std::vector<std::string> class_names() const override { return all_->class_names(); }
  int32_t read(int64_t i, const Draw* draw, float* out) const override {
    return all_->read(chosen_.at(static_cast<size_t>(i)), draw, out);
  }
  std::vector<std::string> remarks() const override { return all_->remarks(); }

 private:
  std::shared_ptr<const ImageDataset> all_;
  std::vector<int32_t> chosen_;
};

}  // namespace dgc
