#pragma once

#include <string>

#include "data/dataset.h"
#include "data/images/memory_images.h"

namespace dgc {

// MNIST and Fashion-MNIST.
inline constexpr SmallImages kMnistImages{.side = 28, .channels = 1, .classes = 10};

// Reads {train,t10k}-images-idx3-ubyte and -labels-idx1-ubyte, each also with .gz behind it, from a folder: the files
// of MNIST and Fashion-MNIST, or images of another size in as many classes. The header is big-endian and has the magic
// number 0x00000803 or 0x00000801 and the sizes; the values follow, one byte each. (The format: "THE MNIST DATABASE",
// Y. LeCun, C. Cortes, C. Burges.) fix: what to do when a file is missing. Throws UserError naming the file.
ImageTable read_idx(const std::string& folder, Split, const std::string& fix);

}  // namespace dgc
