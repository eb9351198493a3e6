#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/images/crop_box.h"

namespace dgc {

struct RgbImage {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
};

// A box of an image, and maybe pixels around it. The image may be smaller than the file's: then the box may begin and
// end within a pixel.
struct ImagePart {
  RgbImage image;
  double top = 0, left = 0, height = 0, width = 0;  // of the box, in pixels of `image`
};

// What is wanted of an image: a box of the file's pixels, and how small it may come. The box must lie in the image, and
// have a pixel at least.
struct WantedPart {
  CropBox box;
  double least_height = 0, least_width = 0;  // in pixels of what is read
};
using ChoosePart = std::function<WantedPart(int64_t height, int64_t width)>;  // of an image of this size
WantedPart whole_image(int64_t height, int64_t width);                        // every pixel, as it is

// Decodes the bytes of a JPEG or PNG file, of a JPEG little more than the box, and that at a half, a quarter or an
// eighth of its size where that is enough. The first bytes tell which of the two it is, not the name (ImageNet has a
// PNG among its .JPEG). Everything becomes 8-bit RGB: grey and palettes are expanded, 16 bits cut to the upper 8, alpha
// dropped, CMYK multiplied out. `out`'s memory is used again. Throws UserError that names the file when it is damaged,
// inside the box or outside, of another kind, or of more than kMostPixels pixels.
void decode_image(std::span<const uint8_t> bytes, const std::string& name, const ChoosePart&, ImagePart& out);

constexpr int64_t kMostPixels = 100'000'000;

// decode_image() calls one of the first two, which call check_image_size() before they allocate. All throw as it does.
void decode_jpeg(std::span<const uint8_t> bytes, const std::string& name, const ChoosePart&, ImagePart& out);
void decode_png(std::span<const uint8_t> bytes, const std::string& name, RgbImage& out);
void check_image_size(int64_t height, int64_t width, const std::string& name);

}  // namespace dgc
