#pragma once

#include "models/network.h"

namespace dgc {

struct ResNetOptions {
  enum class Stem { automatic, cifar, imagenet } stem = Stem::automatic;
  enum class Shortcut { automatic, identity_pad, projection } shortcut = Shortcut::automatic;
  int64_t depth = 20;  // cifar: 6n + 2; imagenet: 18, 34, 50, 101, 152
  int64_t width = 0;   // channels of the first stage; 0: 16 (cifar) or 64 (imagenet)
  int64_t classes = 10;
  bool operator==(const ResNetOptions&) const = default;
};

bool is_imagenet_depth(int64_t depth);
// Decides the options left open: the stem is imagenet's for its five depths, and shortcut and width are the stem's.
ResNetOptions completed(ResNetOptions);

// He, Zhang, Ren, Sun, "Deep residual learning for image recognition" (2015). Names are torchvision's, and as in
// torchvision the stride of a bottleneck sits in its 3x3 convolution. With the cifar stem: three stages of n basic
// blocks at 1, 2, 4 times the width (section 4.2), parameter-free shortcuts unless `projection`. image: [height, width,
// channels]. The depth must be one of the stem's. Throws UserError where the image does not fit.
Network make_resnet(const ResNetOptions&, const Shape& image);

}  // namespace dgc
