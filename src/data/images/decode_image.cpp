#include "data/images/decode_image.h"

#include <algorithm>
#include <array>

#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr std::array<uint8_t, 3> kJpeg = {0xff, 0xd8, 0xff};
constexpr std::array<uint8_t, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool begins_with(std::span<const uint8_t> bytes, std::span<const uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

}  // namespace

void decode_image(std::span<const uint8_t> bytes, const std::string& name, const ChoosePart& choose, ImagePart& out) {
  if (bytes.empty()) throw_user_error("{}: the file is empty", name);
  if (begins_with(bytes, kJpeg)) return decode_jpeg(bytes, name, choose, out);
  if (!begins_with(bytes, kPng)) throw_user_error("{}: neither a JPEG nor a PNG file", name);
  decode_png(bytes, name, out.image);
  const CropBox box = choose(out.image.height, out.image.width).box;
  out.top = static_cast<double>(box.top);
  out.left = static_cast<double>(box.left);
  out.height = static_cast<double>(box.height);
  out.width = static_cast<double>(box.width);
}

WantedPart whole_image(int64_t height, int64_t width) {
  return {{0, 0, height, width}, static_cast<double>(height), static_cast<double>(width)};
}

void check_image_size(int64_t height, int64_t width, const std::string& name) {
  if (height < 1 || width < 1) throw_user_error("{}: an image of {} x {} pixels", name, height, width);
  if (height > kMostPixels / width) {
    throw_user_error("{}: {} x {} pixels are more than the {} an image may have", name, height, width, kMostPixels);
  }
}

}  // namespace dgc
