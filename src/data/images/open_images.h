#pragma once

#include <memory>
#include <string>

#include "data/images/image_dataset.h"
#include "data/images/image_file.h"
#include "data/images/options.h"

// These functions open the sets of images that data.type can name. They throw UserError that names the file and says
// what is wrong with it.
namespace dgc {

// path: the set's folder.
std::unique_ptr<ImageDataset> open_cifar10(const std::string& path, const ImageOptions&, Split);
std::unique_ptr<ImageDataset> open_mnist(const std::string& path, const ImageOptions&, Split);
std::unique_ptr<ImageDataset> open_fashion_mnist(const std::string& path, const ImageOptions&, Split);
std::unique_ptr<ImageDataset> open_image_folder(const std::string& path, const ImageOptions&, Split);
std::unique_ptr<ImageDataset> open_synthetic(const std::string&, const ImageOptions&, Split);

// Readers of image files for models that were trained on these sets.
std::unique_ptr<ImageFileReader> read_like_cifar10(const ImageOptions&);
std::unique_ptr<ImageFileReader> read_like_mnist(const ImageOptions&);
std::unique_ptr<ImageFileReader> read_like_fashion_mnist(const ImageOptions&);
std::unique_ptr<ImageFileReader> read_like_image_folder(const ImageOptions&);

}  // namespace dgc
