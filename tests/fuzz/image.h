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

// All pixels come from the file, whatever lay in the memory before.
inline void check_image(const std::string& file) {
  static RgbImage image, other;
  const std::span bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  image.pixels.assign(3 * kMany, 0);
  other.pixels.assign(3 * kMany, 255);
  if (!accepted("input", [&] { decode_image(bytes, "input", image); })) return;
  require(image.height >= 1 && image.width >= 1 && image.height <= kMostPixels / image.width);
  require(image.pixels.size() == static_cast<size_t>(image.height * image.width) * 3);
  decode_image(bytes, "input", other);
  require(image.pixels == other.pixels);
}

}  // namespace dgc::fuzz
