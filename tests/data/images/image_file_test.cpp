#include "data/images/image_file.h"

#include "data/images/image_folder.h"
#include "data/images/memory_images.h"
#include "tests/data/images/images.h"

namespace dgc {
namespace {

const NormalizeOptions kGrey{{0.25f}, {0.5f}}, kRgb{{0.25f, 0.5f, 0.75f}, {0.5f, 0.25f, 0.125f}};

std::vector<float> read_with(ImageFileReader& reader, const std::string& file, int64_t numbers) {
  std::vector<float> out(static_cast<size_t>(numbers), -7.f);
  reader.read(file, out.data());
  return out;
}

TEST_CASE("an image file is read as a folder's evaluation reads it") {
  const TempFolder temp;
  Bytes pixels;
  for (int i = 0; i < 31 * 17 * 3; ++i) pixels.push_back(static_cast<uint8_t>(i * 7));
  const std::string file = temp.write("val/cat/a.png", png_bytes(pixels, 31, 17));
  temp.write("train/cat/a.png", png_bytes(pixels, 31, 17));
  const ImageFolder folder(temp.path(), Split::test, {.image_size = 8}, Normalizer(kRgb), "");
  std::vector<float> expected(8 * 8 * 3);
  folder.read(0, nullptr, expected.data());
  CHECK(read_with(*make_folder_image_reader(8, Normalizer(kRgb)), file, 8 * 8 * 3) == expected);
}

TEST_CASE("the shorter side of 256/224 is rounded to the nearest") {
  CHECK(shorter_side(224) == 256);
  CHECK(shorter_side(4) == 5);  // 4.57
  CHECK(shorter_side(8) == 9);  // 9.14
}

TEST_CASE("an image file of the right size is read bit for bit as the same image in memory") {
  const TempFolder temp;
  SECTION("grey, from a grey file and from a coloured one of equal channels, with padding") {
    const Bytes grey = counting(6 * 6, 100);
    Bytes coloured;
    for (const uint8_t value : grey) coloured.insert(coloured.end(), {value, value, value});
    const MemoryImages memory(ImageTable{{6, 6, 1}, 1, grey, {0}}, {}, Normalizer(kGrey), 8);
    std::vector<float> expected(8 * 8);
    memory.read(0, nullptr, expected.data());
    const auto reader = make_small_image_reader(6, Normalizer(kGrey), 8);
    const PngKind kind{.colours = SPNG_COLOR_TYPE_GRAYSCALE};
    CHECK(read_with(*reader, temp.write("grey.png", png_bytes(grey, 6, 6, kind)), 8 * 8) == expected);
    CHECK(read_with(*reader, temp.write("coloured.png", png_bytes(coloured, 6, 6)), 8 * 8) == expected);
  }
  SECTION("colours") {
    const Bytes rgb = counting(6 * 6 * 3, 60);
    const MemoryImages memory(ImageTable{{6, 6, 3}, 1, rgb, {0}}, {}, Normalizer(kRgb), 0);
    std::vector<float> expected(6 * 6 * 3);
    memory.read(0, nullptr, expected.data());
    const std::string file = temp.write("rgb.png", png_bytes(rgb, 6, 6));
    CHECK(read_with(*make_small_image_reader(6, Normalizer(kRgb), 0), file, 6 * 6 * 3) == expected);
  }
}

TEST_CASE("an image file of another size is resized, cut to its centre and made grey") {
  // 4 x 2 pixels, of which the middle 2 x 2 are red, green, blue and white: 0.299, 0.587, 0.114 and 1 times 255.
  const TempFolder temp;
  const Bytes pixels = {9, 9, 9, 255, 0, 0,   0,   255, 0,   9, 9, 9,  //
                        9, 9, 9, 0,   0, 255, 255, 255, 255, 9, 9, 9};
  const std::string file = temp.write("wide.png", png_bytes(pixels, 4, 2));
  const Normalizer plain({{0.f}, {1.f / 255.f}});
  const std::vector<float> out = read_with(*make_small_image_reader(2, plain, 0), file, 4);
  for (const auto& [i, grey] : {std::pair<size_t, float>{0, 76}, {1, 150}, {2, 29}, {3, 255}}) {
    CHECK(out[i] == Approx(grey).margin(1e-3));
  }
  // Solid and four times as large, it stays solid.
  const std::string large = temp.write("large.jpg", rgb_jpeg(solid(33, 8, 40, 40, 40), 33, 8));
  for (const float value : read_with(*make_small_image_reader(2, plain, 0), large, 4)) {
    CHECK(value == Approx(40).margin(2));
  }
}

TEST_CASE("a file that is no image is named") {
  const TempFolder temp;
  const std::string file = temp.write("notes.png", {'n', 'o'});
  std::vector<float> out(4);
  const auto small = make_small_image_reader(2, Normalizer(kGrey), 0);
  CHECK(user_error([&] { small->read(file, out.data()); }) == file + ": neither a JPEG nor a PNG file");
  CHECK_THAT(user_error([&] { small->read(temp.path() + "/none.png", out.data()); }),
             Catch::Contains("none.png: cannot open it"));
}

}  // namespace
}  // namespace dgc
