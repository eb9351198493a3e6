#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "tensor/errors.h"

namespace dgc {

// The sizes of a tensor, outermost first. There are at most kMaxRank sizes, which the object itself holds, so that
// making a view never allocates.
//
// Images are [batch, height, width, channels] (NHWC): that is how they lie in memory on every backend.
// Convolution weights are [out, in / groups, kernel_h, kernel_w] and matrices [out, in], as PyTorch stores them.
class Shape {
 public:
  static constexpr int kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const int64_t> sizes);  // throws InternalError past kMaxRank or for a negative size

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return sizes_[static_cast<size_t>(axis)]; }
  int64_t& operator[](int axis) { return sizes_[static_cast<size_t>(axis)]; }
  int64_t numel() const;  // 1 for rank 0

  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }
  bool operator==(const Shape&) const = default;  // unused sizes stay 0

  std::string str() const;  // "[64, 3, 3, 3]"

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

}  // namespace dgc
