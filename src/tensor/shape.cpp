#include "tensor/shape.h"

#include <algorithm>

namespace dgc {

Shape::Shape(std::span<const int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  DGC_CHECK(sizes.size() <= size_t{kMaxRank}, "too many dimensions");
  DGC_CHECK(std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; }), "negative size");
  std::ranges::copy(sizes, sizes_.begin());
}

int64_t Shape::numel() const {
  int64_t n = 1;
  for (const int64_t size : *this) n *= size;
  return n;
}

std::string Shape::str() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) text += (axis > 0 ? ", " : "") + std::to_string((*this)[axis]);
  return text + "]";
}

}  // namespace dgc
