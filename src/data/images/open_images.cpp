#include "data/images/open_images.h"

#include <algorithm>

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

// The classes' names, in the order of the labels (the sets' own documentation).
const std::vector<std::string> kCifar10Classes = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                  "dog",      "frog",       "horse", "ship", "truck"};
const std::vector<std::string> kFashionMnistClasses = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                       "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

std::string fix(const std::string& script) {
  return "run data/" + script + " to get the data set, and set data.path to its folder";
}

// The images of these classes, each numbered by its place in the list.
ImageTable only(ImageTable all, const std::vector<int64_t>& classes) {
  if (classes.empty()) return all;
  ImageTable kept{.shape = all.shape, .classes = std::ssize(classes), .pixels = {}, .labels = {}};
  for (size_t i = 0; i < all.labels.size(); ++i) {
    const auto place = std::ranges::find(classes, int64_t{all.labels[i]}) - classes.begin();
    if (place == std::ssize(classes)) continue;
    const auto pixels = all.pixels.begin() + static_cast<int64_t>(i) * all.shape.numel();
    kept.pixels.insert(kept.pixels.end(), pixels, pixels + all.shape.numel());
    kept.labels.push_back(static_cast<uint8_t>(place));
  }
  if (!all.class_names.empty()) {
    for (const int64_t each : classes) kept.class_names.push_back(all.class_names.at(static_cast<size_t>(each)));
  }
  if (kept.labels.empty()) throw_user_error("data.only_classes: the set has no image of these classes");
  return kept;
}

std::unique_ptr<ImageDataset> in_memory(ImageTable table, const ImageOptions& o, const NormalizeOptions& normalize,
                                        const std::vector<std::string>& class_names = {}) {
  table.class_names = class_names;
  return std::make_unique<MemoryImages>(only(std::move(table), o.only_classes), o.augment, Normalizer(normalize),
                                        o.pad_to);
}

}  // namespace

std::unique_ptr<ImageDataset> open_cifar10(const std::string& path, const ImageOptions& o, Split split) {
  return in_memory(read_cifar10(path, split, fix("cifar10")), o, kCifar10, kCifar10Classes);
}

std::unique_ptr<ImageDataset> open_mnist(const std::string& path, const ImageOptions& o, Split split) {
  return in_memory(read_idx(path, split, fix("mnist")), o, kMnist);
}

std::unique_ptr<ImageDataset> open_fashion_mnist(const std::string& path, const ImageOptions& o, Split split) {
  return in_memory(read_idx(path, split, fix("fashion_mnist")), o, kFashionMnist, kFashionMnistClasses);
}

std::unique_ptr<ImageDataset> open_image_folder(const std::string& path, const ImageOptions& o, Split split) {
  return std::make_unique<ImageFolder>(path, split, o, Normalizer(kImageNet),
                                       "set data.path to a folder with train/CLASS/*.jpg and val/CLASS/*.jpg "
                                       "(docs/first_hour.md says how to make val of train; data/imagenet makes both of "
                                       "ImageNet's archives)");
}

std::unique_ptr<ImageDataset> open_synthetic(const std::string&, const ImageOptions& o, Split split) {
  return std::make_unique<SyntheticImages>(o.synthetic, split);
}

std::unique_ptr<ImageFileReader> read_like_cifar10(const ImageOptions& o) {
  return make_small_image_reader(kCifar10Images.side, Normalizer(kCifar10), o.pad_to);
}

std::unique_ptr<ImageFileReader> read_like_mnist(const ImageOptions& o) {
  return make_small_image_reader(kMnistImages.side, Normalizer(kMnist), o.pad_to);
}

std::unique_ptr<ImageFileReader> read_like_fashion_mnist(const ImageOptions& o) {
  return make_small_image_reader(kMnistImages.side, Normalizer(kFashionMnist), o.pad_to);
}

std::unique_ptr<ImageFileReader> read_like_image_folder(const ImageOptions& o) {
  return make_folder_image_reader(o.image_size, Normalizer(kImageNet));
}

}  // namespace dgc
