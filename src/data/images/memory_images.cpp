#include "data/images/memory_images.h"

#include <algorithm>

#include "tensor/errors.h"

namespace dgc {
namespace {

enum ImageSlot : uint64_t { kRow, kColumn, kFlip };  // slots of Draw

}  // namespace

MemoryImages::MemoryImages(ImageTable table, const AugmentOptions& augment, Normalizer normalizer, int64_t pad_to)
    : table_(std::move(table)), augment_(augment), normalizer_(std::move(normalizer)), shape_(table_.shape) {
  DGC_CHECK(table_.pixels.size() == table_.labels.size() * static_cast<size_t>(shape_.numel()), "pixels per label");
  DGC_CHECK(normalizer_.channels() == shape_.channels, "normalised channels");
  if (pad_to == 0) return;
  if (pad_to < std::max(shape_.height, shape_.width)) {
    throw_user_error("data.pad_to: {} is less than the images' {} x {} pixels", pad_to, shape_.height, shape_.width);
  }
  shape_.height = shape_.width = pad_to;
}

int32_t MemoryImages::read(int64_t i, const Draw* draw, float* out) const {
  DGC_CHECK(i >= 0 && i < size(), "sample index");
  const ImageShape& raw = table_.shape;
  const int64_t channels = raw.channels;
  // Output (y, x) shows the raw pixel (y + top, x + left), or a zero where there is none.
  int64_t top = -((shape_.height - raw.height) / 2), left = -((shape_.width - raw.width) / 2);
  bool flip = false;
  if (draw != nullptr) {
    const auto places = static_cast<uint32_t>(2 * augment_.pad_crop + 1);
    top += int64_t{draw->below(kRow, places)} - augment_.pad_crop;
    left += int64_t{draw->below(kColumn, places)} - augment_.pad_crop;
    flip = augment_.flip && draw->below(kFlip, 2) == 1;
  }

  const uint8_t* image = table_.pixels.data() + i * raw.numel();
  const float* table = normalizer_.table();
  for (int64_t y = 0; y < shape_.height; ++y) {
    const bool row_inside = y + top >= 0 && y + top < raw.height;
    for (int64_t x = 0; x < shape_.width; ++x) {
      const int64_t column = x + left;
      const bool inside = row_inside && column >= 0 && column < raw.width;
      const uint8_t* pixel = inside ? image + ((y + top) * raw.width + column) * channels : nullptr;
      float* to = out + (y * shape_.width + (flip ? shape_.width - 1 - x : x)) * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = table[c * 256 + (inside ? pixel[c] : 0)];
    }
  }
  return table_.labels[static_cast<size_t>(i)];
}

}  // namespace dgc
