#include "data/images/open_images.h"

#include "data/images/cifar10.h"
#include "data/images/idx.h"
#include "data/images/image_folder.h"
#include "data/images/memory_images.h"
#include "data/images/synthetic.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Mean and deviation of the training set's pixels / 255, as commonly published.
const NormalizeOptions kMnist{{0.1307f}, {0.3081f}};
const NormalizeOptions kFashionMnist{{0.2860f}, {0.3530f}};
const NormalizeOptions kCifar10{{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}};
const NormalizeOptions kImageNet{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

std::string fix(const std::string& script) {
  return "run data/" + script + " to get the data set, and set data.path to its folder";
}

std::unique_ptr<ImageDataset> in_memory(ImageTable table, const ImageDatasetOptions& o,
                                        const NormalizeOptions& normalize) {
  return std::make_unique<MemoryImages>(std::move(table), o.augment, Normalizer(normalize), o.pad_to);
}

}  // namespace

std::unique_ptr<ImageDataset> open_images(const ImageDatasetOptions& o, Split split) {
  if (o.type == "mnist") return in_memory(read_idx(o.path, split, fix("mnist")), o, kMnist);
  if (o.type == "fashion_mnist") return in_memory(read_idx(o.path, split, fix("fashion_mnist")), o, kFashionMnist);
  if (o.type == "cifar10") return in_memory(read_cifar10(o.path, split, fix("cifar10")), o, kCifar10);
  if (o.type == "image_folder") {
    return std::make_unique<ImageFolder>(o.path, split, o.image_size, o.augment, Normalizer(kImageNet),
                                         "set data.path to a folder with train/CLASS/*.jpg and val/CLASS/*.jpg "
                                         "(data/imagenet makes one of ImageNet's archives)");
  }
  if (o.type == "synthetic") return std::make_unique<SyntheticImages>(o.synthetic, split);
  throw_user_error("data.type: \"{}\" is none of mnist, fashion_mnist, cifar10, image_folder, synthetic", o.type);
}

}  // namespace dgc
