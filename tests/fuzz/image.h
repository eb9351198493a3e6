#pragma once

#include "data/images/decode_image.h"
#include "tests/fuzz/input.h"

// What the fuzzers of image files share. libspng and libjpeg-turbo are as the system has them, so their own errors show
// only where they stray far.
namespace dgc::fuzz {

// An image that may be decoded but is so large that few others would be tried beside it.
constexpr uint64_t kMany = 1 << 16;
inline bool takes_long(uint64_t height, uint64_t width) {
  const uint64_t pixels = height * width;
  return pixels > kMany && pixels <= static_cast<uint64_t>(kMostPixels);
}

// All pixels come from the file, whatever lay in the memory before; and a box has the same pixels as the whole image.
inline void check_image(const std::string& file) {
  static ImagePart whole, other;
  const std::span bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  whole.image.pixels.assign(3 * kMany, 0);
  other.image.pixels.assign(3 * kMany, 255);
  if (!accepted("input", [&] { decode_image(bytes, "input", whole_image, whole); })) return;
  const RgbImage& image = whole.image;
  require(image.height >= 1 && image.width >= 1 && image.height <= kMostPixels / image.width);
  require(image.pixels.size() == static_cast<size_t>(image.height * image.width) * 3);
  decode_image(bytes, "input", whole_image, other);
  require(image.pixels == other.image.pixels);
  // Where the box lies depends on the file's last bytes.
  const auto last = [&](size_t i) { return static_cast<uint8_t>(file[file.size() - 1 - i % file.size()]); };
  CropBox box{last(1) % image.height, last(2) % image.width, 0, 0};
  box.height = 1 + last(3) % (image.height - box.top);
  box.width = 1 + last(4) % (image.width - box.left);
  const auto part_of = [&](double least_height, double least_width) {
    return [=](int64_t, int64_t) { return WantedPart{box, least_height, least_width}; };
  };
  decode_image(bytes, "input", part_of(static_cast<double>(box.height), static_cast<double>(box.width)), other);
  const auto top = static_cast<int64_t>(other.top), left = static_cast<int64_t>(other.left);
  for (int64_t y = 0; y < box.height; ++y) {
    const uint8_t* wanted = image.pixels.data() + ((box.top + y) * image.width + box.left) * 3;
    const uint8_t* row = other.image.pixels.data() + ((top + y) * other.image.width + left) * 3;
    require(std::memcmp(row, wanted, static_cast<size_t>(box.width) * 3) == 0);
  }
  decode_image(bytes, "input", part_of(static_cast<double>(last(5)), static_cast<double>(last(5))), other);
  require(other.top >= 0 && other.top + other.height <= static_cast<double>(other.image.height));
  require(other.left >= 0 && other.left + other.width <= static_cast<double>(other.image.width));
}

}  // namespace dgc::fuzz
