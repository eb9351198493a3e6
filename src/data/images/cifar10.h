#pragma once

#include <string>

#include "data/dataset.h"
#include "data/images/memory_images.h"

namespace dgc {

inline constexpr SmallImages kCifar10Images{.side = 32, .channels = 3, .classes = 10};

// Reads CIFAR-10's binary version from a folder: data_batch_1.bin ... data_batch_5.bin, or test_batch.bin. A record is
// a label byte and 32 x 32 pixels, all red ones before the green and the blue (A. Krizhevsky,
// cs.toronto.edu/~kriz/cifar). The files may have any number of records. Throws UserError that names the file. fix:
// what to do when a file is missing.
ImageTable read_cifar10(const std::string& folder, Split, const std::string& fix);

}  // namespace dgc
