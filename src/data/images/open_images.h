#pragma once

#include <memory>
#include <string>

#include "data/images/image_dataset.h"
#include "data/images/options.h"

namespace dgc {

struct ImageDatasetOptions {
  std::string type;  // "mnist", "fashion_mnist", "cifar10", "image_folder" or "synthetic"
  std::string path;  // folder; "synthetic" has none
  AugmentOptions augment;
  int64_t pad_to = 0;        // mnist, fashion_mnist, cifar10: raw zeros around the image up to this side; 0: as it is
  int64_t image_size = 224;  // image_folder: side of what read() writes
  SyntheticOptions synthetic;
};

// Throws UserError, naming the file and what is wrong with it.
std::unique_ptr<ImageDataset> open_images(const ImageDatasetOptions&, Split);

}  // namespace dgc
