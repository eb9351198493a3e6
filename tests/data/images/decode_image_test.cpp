#include "data/images/decode_image.h"

#include <cstdio>
// libjpeg's header needs <cstdio> before it.
#include <jpeglib.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tensor/rng.h"
#include "tests/data/images/images.h"

namespace dgc {
namespace {

RgbImage decode(const Bytes& bytes) {
  ImagePart part;
  decode_image(bytes, "x.img", whole_image, part);
  return part.image;
}

std::string error_of(const Bytes& bytes) {
  return user_error([&] { decode(bytes); });
}

Bytes gradient(int width, int height) {
  Bytes out;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      out.insert(out.end(), {static_cast<uint8_t>(4 * x), static_cast<uint8_t>(4 * y), static_cast<uint8_t>(x + y)});
    }
  }
  return out;
}

void check_near(const Bytes& a, const Bytes& b, int most) {
  REQUIRE(a.size() == b.size());
  int worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(int{a[i]} - int{b[i]}));
  CHECK(worst <= most);
}

TEST_CASE("PNG is exact") {
  const Bytes pixels = gradient(17, 9);
  const RgbImage image = decode(png_bytes(pixels, 17, 9));
  CHECK(image.width == 17);
  CHECK(image.height == 9);
  CHECK(image.pixels == pixels);
}

TEST_CASE("PNG of every kind becomes 8-bit RGB") {
  CHECK(decode(png_bytes({10, 250}, 2, 1, {SPNG_COLOR_TYPE_GRAYSCALE, 8})).pixels == Bytes{10, 10, 10, 250, 250, 250});
  CHECK(decode(png_bytes({0x80}, 2, 1, {SPNG_COLOR_TYPE_GRAYSCALE, 1})).pixels == Bytes{255, 255, 255, 0, 0, 0});
  CHECK(decode(png_bytes({1, 2, 3, 0}, 1, 1, {SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8})).pixels == Bytes{1, 2, 3});
  CHECK(decode(png_bytes({9, 0}, 1, 1, {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 8})).pixels == Bytes{9, 9, 9});
  spng_plte palette{};
  palette.n_entries = 2;
  palette.entries[1] = {7, 8, 9, 0};
  CHECK(decode(png_bytes({1, 0}, 2, 1, {SPNG_COLOR_TYPE_INDEXED, 8}, &palette)).pixels == Bytes{7, 8, 9, 0, 0, 0});
}

TEST_CASE("PNG of 16 bits keeps the upper 8") {
  const Bytes png = png_bytes({0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc}, 1, 1, {SPNG_COLOR_TYPE_TRUECOLOR, 16});
  // The encoder takes either byte order of the machine; whichever it is, both bytes of a sample are one of the two.
  const Bytes pixels = decode(png).pixels;
  CHECK((pixels == Bytes{0x12, 0x56, 0x9a} || pixels == Bytes{0x34, 0x78, 0xbc}));
}

TEST_CASE("JPEG: colour with and without subsampling") {
  const Bytes pixels = gradient(33, 21);
  const RgbImage image = decode(rgb_jpeg(pixels, 33, 21));
  CHECK(image.width == 33);
  CHECK(image.height == 21);
  check_near(image.pixels, pixels, 8);
  const Bytes solid_pixels = solid(33, 21, 200, 100, 50);
  check_near(decode(jpeg_bytes(solid_pixels, 33, 21, TJPF_RGB, TJSAMP_420)).pixels, solid_pixels, 2);
}

TEST_CASE("JPEG: grey") {
  const Bytes grey(8 * 8, 77);
  check_near(decode(jpeg_bytes(grey, 8, 8, TJPF_GRAY, TJSAMP_GRAY)).pixels, solid(8, 8, 77, 77, 77), 1);
}

TEST_CASE("JPEG: CMYK as Adobe stores it, 255 for no ink") {
  Bytes inks;
  for (int i = 0; i < 64; ++i) inks.insert(inks.end(), {255, 128, 0, 200});
  const Bytes want = solid(8, 8, 200, 100, 0);
  check_near(decode(jpeg_bytes(inks, 8, 8, TJPF_CMYK, TJSAMP_444)).pixels, want, 3);
}

TEST_CASE("JPEG: what black leaves of each ink is rounded to the nearest") {
  Bytes inks;
  for (int i = 0; i < 64; ++i) {
    inks.insert(inks.end(),
                {static_cast<uint8_t>(3 * i), static_cast<uint8_t>(255 - i), 128, static_cast<uint8_t>(100 + 2 * i)});
  }
  const Bytes jpeg = jpeg_bytes(inks, 8, 8, TJPF_CMYK, TJSAMP_444);
  const tjhandle handle = tjInitDecompress();
  REQUIRE(tjDecompress2(handle, jpeg.data(), jpeg.size(), inks.data(), 8, 0, 8, TJPF_CMYK, TJFLAG_ACCURATEDCT) == 0);
  tjDestroy(handle);
  Bytes want;
  for (size_t i = 0; i < inks.size(); i += 4) {
    for (size_t c = 0; c < 3; ++c) {
      want.push_back(static_cast<uint8_t>(std::lround(int{inks[i + c]} * int{inks[i + 3]} / 255.0)));
    }
  }
  CHECK(decode(jpeg).pixels == want);
}

TEST_CASE("JPEG: what its header says wrongly beside the pixels costs none of them") {
  const Bytes good = rgb_jpeg(gradient(33, 21), 33, 21);
  const Bytes pixels = decode(good).pixels;
  const auto find = [&good](const Bytes& what) {
    const auto found = std::search(good.begin(), good.end(), what.begin(), what.end());
    REQUIRE(found != good.end());
    return found - good.begin();
  };
  const std::ptrdiff_t jfif = find({0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F', 0}), scan = find({0xff, 0xda, 0, 12, 3});
  Bytes version = good, limits = good, adobe = good;
  version[static_cast<size_t>(jfif) + 9] = 2;
  CHECK(decode(version).pixels == pixels);
  limits[static_cast<size_t>(scan) + 12] = 0;  // the last frequency of the scan, which has all 64
  CHECK(decode(limits).pixels == pixels);
  // Adobe's marker in the place of JFIF's; its last byte is the colour code, of which 2 is YCCK.
  adobe.erase(adobe.begin() + jfif, adobe.begin() + jfif + 18);
  const Bytes marker = {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 2};
  adobe.insert(adobe.begin() + jfif, marker.begin(), marker.end());
  CHECK(decode(adobe).pixels == pixels);
}

// As TurboJPEG decodes it, at 8 / shrink eighths: a second reader, which knows no boxes.
RgbImage turbo_image(const Bytes& jpeg, int shrink) {
  const tjhandle handle = tjInitDecompress();
  int width = 0, height = 0, sampling = 0, colours = 0;
  REQUIRE(tjDecompressHeader3(handle, jpeg.data(), jpeg.size(), &width, &height, &sampling, &colours) == 0);
  const tjscalingfactor factor{1, shrink};
  width = TJSCALED(width, factor);
  height = TJSCALED(height, factor);
  RgbImage image{height, width, Bytes(static_cast<size_t>(width * height * 3))};
  REQUIRE(tjDecompress2(handle, jpeg.data(), jpeg.size(), image.pixels.data(), width, 0, height, TJPF_RGB,
                        TJFLAG_ACCURATEDCT) == 0);
  tjDestroy(handle);
  return image;
}

// Pixels that a JPEG of good quality hardly loses, with edges at every place of a block.
Bytes pattern(int width, int height) {
  Bytes out;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int disc = (x - 30) * (x - 30) + (y - 25) * (y - 25) < 400 ? 90 : 0;
      out.insert(out.end(), {static_cast<uint8_t>(2 * x + disc), static_cast<uint8_t>(x * y / 16 % 256),
                             static_cast<uint8_t>(255 - 3 * y + disc)});
    }
  }
  return out;
}

CropBox some_box(int width, int height, uint32_t number) {
  const Philox rng(5, number);
  CropBox box;
  box.top = rng.below(0, static_cast<uint32_t>(height));
  box.left = rng.below(1, static_cast<uint32_t>(width));
  box.height = 1 + rng.below(2, static_cast<uint32_t>(height - box.top));
  box.width = 1 + rng.below(3, static_cast<uint32_t>(width - box.left));
  return box;
}

TEST_CASE("JPEG: a box has the pixels that it has in the whole image, at each scale") {
  const auto sampling = GENERATE(TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411, TJSAMP_GRAY);
  const int flags = GENERATE(0, TJFLAG_PROGRESSIVE);
  const auto [width, height] = GENERATE(table<int, int>({{67, 53}, {64, 48}, {3, 5}, {1, 40}, {100, 2}}));
  const int shrink = GENERATE(1, 2, 4, 8);
  CAPTURE(sampling, flags, width, height, shrink);
  const Bytes jpeg = jpeg_bytes(pattern(width, height), width, height, TJPF_RGB, sampling, flags);
  const RgbImage whole = turbo_image(jpeg, shrink);
  if (shrink == 1) CHECK(decode(jpeg).pixels == whole.pixels);
  ImagePart part;
  for (uint32_t i = 0; i < 40; ++i) {
    const CropBox box = some_box(width, height, i);
    CAPTURE(box.top, box.left, box.height, box.width);
    const double least_height = static_cast<double>(box.height) / shrink;
    const double least_width = static_cast<double>(box.width) / shrink;
    decode_image(
        jpeg, "x.jpg",
        [&](int64_t, int64_t) {
          return WantedPart{box, least_height, least_width};
        },
        part);
    REQUIRE(part.height == least_height);
    REQUIRE(part.width == least_width);
    REQUIRE(static_cast<double>(part.image.width) <= least_width + 40);
    // Where the box begins in the whole image, and in the part.
    const int64_t top = box.top / shrink, left = box.left / shrink;
    const auto part_top = static_cast<int64_t>(part.top), part_left = static_cast<int64_t>(part.left);
    REQUIRE(part.top - std::floor(part.top) == static_cast<double>(box.top % shrink) / shrink);
    REQUIRE(part.left - std::floor(part.left) == static_cast<double>(box.left % shrink) / shrink);
    const auto columns = static_cast<int64_t>(std::ceil(part.left + part.width)) - part_left;
    for (int64_t y = part_top; y < static_cast<int64_t>(std::ceil(part.top + part.height)); ++y) {
      const uint8_t* row = part.image.pixels.data() + (y * part.image.width + part_left) * 3;
      const uint8_t* wanted = whole.pixels.data() + ((top + y - part_top) * whole.width + left) * 3;
      REQUIRE(std::equal(row, row + columns * 3, wanted));
    }
  }
}

// An image of so many channels, 1 or 3, as libjpeg writes it after `prepare` has set what the image is to have.
Bytes jpeg_prepared(const Bytes& pixels, int width, int height, int channels,
                    const std::function<void(jpeg_compress_struct&)>& prepare) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  prepare(info);
  jpeg_start_compress(&info, TRUE);
  const std::ptrdiff_t stride = std::ptrdiff_t{channels} * width;
  for (int y = 0; y < height; ++y) {
    Bytes row(pixels.begin() + stride * y, pixels.begin() + stride * (y + 1));
    uint8_t* rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  const Bytes out(memory, memory + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return out;
}

TEST_CASE("JPEG: a box has the pixels of the whole image, however many of them share a colour") {
  const auto [across, down] = GENERATE(table<int, int>({{4, 2}, {2, 4}, {3, 2}, {4, 1}, {1, 4}, {2, 2}}));
  const int width = 331, height = 245;
  CAPTURE(across, down);
  const Bytes jpeg = jpeg_prepared(pattern(width, height), width, height, 3, [&](jpeg_compress_struct& info) {
    info.comp_info[0].h_samp_factor = across;
    info.comp_info[0].v_samp_factor = down;
  });
  const auto at_half_scale = [&](const CropBox& box) {
    ImagePart part;
    const auto half = [&](int64_t, int64_t) {
      return WantedPart{box, static_cast<double>(box.height) / 2, static_cast<double>(box.width) / 2};
    };
    decode_image(jpeg, "x.jpg", half, part);
    return part;
  };
  const ImagePart whole = at_half_scale({0, 0, height, width});
  const int64_t shrink = whole.height < height ? 2 : 1;
  CHECK(shrink == (across * down > 4 ? 1 : 2));
  for (uint32_t i = 0; i < 40; ++i) {
    CropBox box = some_box(width, height, i);
    box.top -= box.top % shrink, box.left -= box.left % shrink;
    CAPTURE(box.top, box.left, box.height, box.width);
    const ImagePart part = at_half_scale(box);
    for (int64_t y = 0; y < static_cast<int64_t>(part.height); ++y) {
      const auto first =
          ((static_cast<int64_t>(part.top) + y) * part.image.width + static_cast<int64_t>(part.left)) * 3;
      const uint8_t* row = part.image.pixels.data() + first;
      const int64_t there = ((box.top / shrink + y) * whole.image.width + box.left / shrink) * 3;
      REQUIRE(std::equal(row, row + static_cast<int64_t>(part.width) * 3, whole.image.pixels.data() + there));
    }
  }
  if (shrink == 1) CHECK(whole.image.pixels == decode(jpeg).pixels);
}

TEST_CASE("JPEG: a box comes at the smallest scale that is enough") {
  const Bytes jpeg = rgb_jpeg(pattern(96, 80), 96, 80);
  const auto scale_for = [&](double least_height, double least_width) {
    ImagePart part;
    decode_image(
        jpeg, "x.jpg",
        [&](int64_t, int64_t) {
          return WantedPart{{8, 0, 64, 96}, least_height, least_width};
        },
        part);
    return part.height / 64;
  };
  CHECK(scale_for(33, 1) == 1);
  CHECK(scale_for(1, 48.5) == 1);
  CHECK(scale_for(32, 48) == 0.5);
  CHECK(scale_for(16, 13) == 0.25);
  CHECK(scale_for(8, 12) == 0.125);
  CHECK(scale_for(0, 0) == 0.125);
}

TEST_CASE("JPEG: what the scans of a file leave out is not made up") {
  const Bytes rgb = pattern(40, 24);
  Bytes grey;
  for (size_t i = 0; i < rgb.size(); i += 3) grey.push_back(rgb[i]);
  const jpeg_scan_info averages{1, {0}, 0, 0, 0, 0};  // of each block, and nothing more
  const RgbImage image = decode(jpeg_prepared(grey, 40, 24, 1, [&](jpeg_compress_struct& info) {
    info.scan_info = &averages;
    info.num_scans = 1;
    info.progressive_mode = TRUE;
  }));
  for (size_t y = 0; y < 24; ++y) {
    for (size_t x = 0; x < 40; ++x) {
      REQUIRE(image.pixels[(y * 40 + x) * 3] == image.pixels[(y / 8 * 8 * 40 + x / 8 * 8) * 3]);
    }
  }
}

TEST_CASE("JPEG: damage outside of the box is damage") {
  Bytes jpeg = rgb_jpeg(pattern(64, 64), 64, 64);
  jpeg.resize(jpeg.size() - 20);
  const double least = GENERATE(0., 8.);
  const auto corner = [least](int64_t, int64_t) { return WantedPart{{0, 0, 8, 8}, least, least}; };
  ImagePart part;
  CHECK_THAT(user_error([&] { decode_image(jpeg, "x.jpg", corner, part); }),
             Catch::Contains("x.jpg: the JPEG file is corrupt or truncated"));
}

// 8 x 8 grey pixels in as many scans: the average, then each frequency bit by bit.
Bytes jpeg_of_scans(size_t scans) {
  std::vector<jpeg_scan_info> script = {{1, {0}, 0, 0, 0, 0}};
  for (int frequency = 1; frequency < 64; ++frequency) {
    constexpr int kBits = 10;
    script.push_back({1, {0}, frequency, frequency, 0, kBits});
    for (int bit = kBits; bit > 0; --bit) script.push_back({1, {0}, frequency, frequency, bit, bit - 1});
  }
  REQUIRE(scans <= script.size());
  Bytes pixels;
  for (int y = 0; y < 8; ++y) pixels.insert(pixels.end(), 8, static_cast<uint8_t>(30 * y));
  return jpeg_prepared(pixels, 8, 8, 1, [&](jpeg_compress_struct& info) {
    info.scan_info = script.data();
    info.num_scans = static_cast<int>(scans);
  });
}

TEST_CASE("JPEG: a file of very many scans is refused") {
  CHECK(decode(jpeg_of_scans(500)).height == 8);
  CHECK(error_of(jpeg_of_scans(501)) == "x.img: the JPEG file is corrupt or truncated: it has more than 500 scans");
}

TEST_CASE("decoding again into the same memory, larger and smaller") {
  ImagePart part;
  for (const int side : {8, 40, 3}) {
    const Bytes pixels = gradient(side, side);
    decode_image(png_bytes(pixels, static_cast<uint32_t>(side), static_cast<uint32_t>(side)), "x", whole_image, part);
    CHECK(part.image.pixels == pixels);
  }
}

TEST_CASE("what is no image, or a damaged one, is named") {
  CHECK(error_of({}) == "x.img: the file is empty");
  CHECK(error_of({'G', 'I', 'F', '8'}) == "x.img: neither a JPEG nor a PNG file");
  const Bytes pixels = gradient(40, 40);
  Bytes jpeg = rgb_jpeg(pixels, 40, 40), png = png_bytes(pixels, 40, 40);
  SECTION("truncated JPEG") {
    jpeg.resize(jpeg.size() - 20);
    CHECK_THAT(error_of(jpeg), Catch::Contains("x.img: the JPEG file is corrupt or truncated"));
  }
  SECTION("JPEG that ends in its header") {
    jpeg.resize(30);
    CHECK_THAT(error_of(jpeg), Catch::Contains("x.img: the JPEG file is corrupt or truncated"));
  }
  SECTION("truncated PNG") {
    png.resize(png.size() / 2);
    CHECK_THAT(error_of(png), Catch::Contains("x.img: the PNG file is corrupt or truncated"));
  }
  SECTION("a PNG's checksum") {
    png[png.size() - 20] ^= 1;
    CHECK_THAT(error_of(png), Catch::Contains("x.img: the PNG file is corrupt or truncated"));
  }
}

TEST_CASE("a damaged JPEG does not spoil the next one, nor lend it its tables") {
  const Bytes good = rgb_jpeg(gradient(16, 16), 16, 16);
  const Bytes pixels = decode(good).pixels;
  for (size_t i = 2; i < good.size(); i += 3) {
    Bytes bad = good;
    bad[i] ^= 0x55;
    try {
      decode(bad);
    } catch (const UserError&) {
    }
    REQUIRE(decode(good).pixels == pixels);
  }
}

// A chunk behind the header: what stands in front, and text that is packed.
Bytes with_packed_text(const Bytes& png, const std::string& front, size_t text_bytes) {
  const Bytes text(text_bytes, 'a');
  uLongf packed_bytes = compressBound(text.size());
  Bytes packed(packed_bytes);
  REQUIRE(compress(packed.data(), &packed_bytes, text.data(), text.size()) == Z_OK);
  Bytes chunk(front.begin(), front.end());
  chunk.insert(chunk.end(), packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(packed_bytes));
  const auto append_u32 = [](Bytes& to, uint64_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<uint8_t>(value >> shift & 0xff));
  };
  constexpr std::ptrdiff_t kHeader = 33;
  Bytes out(png.begin(), png.begin() + kHeader);
  append_u32(out, chunk.size() - 4);
  out.insert(out.end(), chunk.begin(), chunk.end());
  append_u32(out, crc32(0, chunk.data(), static_cast<uInt>(chunk.size())));
  out.insert(out.end(), png.begin() + kHeader, png.end());
  return out;
}

TEST_CASE("PNG with more to unpack beside its pixels than an image needs is refused") {
  const Bytes pixels{1, 2, 3}, png = png_bytes(pixels, 1, 1);
  const std::string text("zTXtkey\0\0", 9), unicode("iTXtkey\0\1\0\0\0", 12), profile("iCCPkey\0\0", 9);
  for (const std::string& front : {text, unicode, profile}) {
    CHECK(decode(with_packed_text(png, front, size_t{1} << 20)).pixels == pixels);
    const std::string error = error_of(with_packed_text(png, front, size_t{17} << 20));
    CHECK_THAT(error, Catch::StartsWith("x.img: the PNG file holds more than 16 MiB beside its pixels, or too many"));
  }
}

TEST_CASE("an image too large for memory is refused before it is allocated") {
  CHECK_NOTHROW(check_image_size(10'000, 10'000, "x"));
  CHECK_THAT(user_error([] { check_image_size(10'000, 10'001, "x"); }), Catch::Contains("x: 10000 x 10001 pixels"));
  CHECK_THROWS_AS(check_image_size(INT64_MAX, INT64_MAX, "x"), UserError);
  CHECK_THROWS_AS(check_image_size(0, 5, "x"), UserError);
  Bytes jpeg = rgb_jpeg(solid(8, 8, 1, 2, 3), 8, 8);
  for (size_t i = 0; i + 8 < jpeg.size(); ++i) {
    if (jpeg[i] != 0xff || jpeg[i + 1] != 0xc0) continue;  // the frame header: height and width follow at 5 and 7
    std::fill_n(jpeg.begin() + static_cast<int64_t>(i) + 5, 4, uint8_t{0xfd});
    break;
  }
  CHECK_THAT(error_of(jpeg), Catch::Contains("65021 x 65021 pixels"));
}

}  // namespace
}  // namespace dgc
