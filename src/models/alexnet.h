#pragma once

#include "models/network.h"

namespace dgc {

struct AlexNetOptions {
  int64_t classes = 1000;
  double dropout = 0.5;  // the share dropped behind each of the first two linear layers
  bool operator==(const AlexNetOptions&) const = default;
};

// An image's sides have at least this many pixels, because three poolings without padding leave nothing of a smaller
// image.
inline constexpr int64_t kAlexNetLeastSide = 63;

// Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural networks" (2012), in the form
// everybody trains: Caffe's, with the convolutions that were split over two GPUs as two groups. 60,965,224 parameters
// at 1000 classes. image: [height, width, 3]; 224 x 224 in the paper. Throws UserError where the image does not fit.
Network make_alexnet(const AlexNetOptions&, const Shape& image);

}  // namespace dgc
