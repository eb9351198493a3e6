#pragma once

#include <cstdint>

namespace dgc {

// A rectangle of an image's pixels.
struct CropBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
  bool operator==(const CropBox&) const = default;
};

}  // namespace dgc
