#include "data/images/image_file.h"

#include <algorithm>
#include <cmath>

#include "data/file.h"
#include "data/images/memory_images.h"

namespace dgc {
namespace {

class FolderImageReader final : public ImageFileReader {
 public:
  FolderImageReader(int64_t size, Normalizer normalizer) : size_(size), normalizer_(std::move(normalizer)) {}

  void read(const std::string& name, float* out) override {
    read_image_file(name, whole_image, scratch_);
    resize_centre(scratch_, shorter_side(size_), size_, out);
    normalizer_.apply(out, size_ * size_);
  }

 private:
  int64_t size_;
  Normalizer normalizer_;
  ImageScratch scratch_;
};

class SmallImageReader final : public ImageFileReader {
 public:
  SmallImageReader(int64_t side, Normalizer normalizer, int64_t pad_to)
      : side_(side), normalizer_(std::move(normalizer)), pad_to_(pad_to) {}

  void read(const std::string& name, float* out) override {
    read_image_file(name, whole_image, scratch_);
    const auto pixels = static_cast<size_t>(side_ * side_);
    std::vector<float> rgb(3 * pixels);
    resize_centre(scratch_, side_, side_, rgb.data());
    const bool grey = normalizer_.channels() == 1;
    ImageTable table{{side_, side_, normalizer_.channels()}, 1, {}, {0}};
    for (const float* p = rgb.data(); p != rgb.data() + rgb.size(); p += 3) {
      if (grey) {
        table.pixels.push_back(byte(0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2]));
      } else {
        table.pixels.insert(table.pixels.end(), {byte(p[0]), byte(p[1]), byte(p[2])});
      }
    }
    MemoryImages(std::move(table), {}, normalizer_, pad_to_).read(0, nullptr, out);
  }

 private:
  static uint8_t byte(float value) { return static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L)); }

  int64_t side_;
  Normalizer normalizer_;
  int64_t pad_to_;
  ImageScratch scratch_;
};

}  // namespace

void read_image_file(const std::string& name, const ChoosePart& choose, ImageScratch& scratch) {
  constexpr size_t kMost = size_t{1} << 28;  // 256 MiB: an image in a file is smaller than its pixels, as a rule
  read_file(name, kMost, scratch.bytes);
  decode_image(scratch.bytes, name, choose, scratch.part);
}

int64_t shorter_side(int64_t size) { return std::lround(static_cast<double>(size) * 256.0 / 224.0); }

void resize_centre(ImageScratch& scratch, int64_t shorter, int64_t size, float* out) {
  const RgbImage& image = scratch.part.image;
  const int64_t least = std::min(image.height, image.width);
  const auto axis = [&](int64_t in) {
    const int64_t full = in * shorter / least;
    return ResizeAxis{in, 0, static_cast<double>(in), full, (full - size) / 2, size};
  };
  resize_rgb(image.pixels.data(), image.width * 3, axis(image.height), axis(image.width), scratch.resize, out);
}

std::unique_ptr<ImageFileReader> make_folder_image_reader(int64_t image_size, Normalizer normalizer) {
  return std::make_unique<FolderImageReader>(image_size, std::move(normalizer));
}

std::unique_ptr<ImageFileReader> make_small_image_reader(int64_t side, Normalizer normalizer, int64_t pad_to) {
  return std::make_unique<SmallImageReader>(side, std::move(normalizer), pad_to);
}

}  // namespace dgc
