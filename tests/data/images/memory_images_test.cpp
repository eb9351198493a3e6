#include "data/images/memory_images.h"

#include <map>

#include "tests/data/fixtures.h"

namespace dgc {
namespace {

constexpr int kSide = 5;

// One grey image whose pixels are 1 ... 25, normalised to themselves: a raw zero stays 0 and is found nowhere else.
MemoryImages image(const AugmentOptions& augment, int64_t pad_to = 0) {
  ImageTable table{{kSide, kSide, 1}, 10, counting(kSide * kSide, 1), {3}};
  return MemoryImages(std::move(table), augment, Normalizer({{0.f}, {1.f / 255.f}}), pad_to);
}

// Independent truth: where the image lies is read off the output, then every pixel is compared.
struct Place {
  int top, left;
  bool flip;
  auto operator<=>(const Place&) const = default;
};

std::vector<float> expected(const Place& p) {
  std::vector<float> out;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int row = y + p.top, column = (p.flip ? kSide - 1 - x : x) + p.left;
      const bool inside = row >= 0 && row < kSide && column >= 0 && column < kSide;
      out.push_back(inside ? static_cast<float>(1 + row * kSide + column) : 0.f);
    }
  }
  return out;
}

TEST_CASE("evaluation leaves the image as it is, whatever the augmentation") {
  const MemoryImages images = image({.pad_crop = 2, .flip = true});
  std::vector<float> out(25);
  CHECK(images.read(0, nullptr, out.data()) == 3);
  for (size_t i = 0; i < 25; ++i) CHECK(out[i] == Approx(static_cast<double>(i + 1)));
}

TEST_CASE("pad-crop and flip: every place and both sides come, equally often, with raw zeros around") {
  const MemoryImages images = image({.pad_crop = 2, .flip = true});
  std::map<std::vector<int>, Place> places;
  const auto rounded = [](const std::vector<float>& values) {
    std::vector<int> out;
    for (const float v : values) out.push_back(static_cast<int>(v + 0.5f));
    return out;
  };
  for (int top = -2; top <= 2; ++top) {
    for (int left = -2; left <= 2; ++left) {
      for (const bool flip : {false, true}) places[rounded(expected({top, left, flip}))] = {top, left, flip};
    }
  }
  REQUIRE(places.size() == 50);
  std::map<Place, int> seen;
  std::vector<float> out(25);
  constexpr int kDraws = 5000;
  for (int i = 0; i < kDraws; ++i) {
    const Draw draw(1, i / 100, i % 100);
    images.read(0, &draw, out.data());
    const auto found = places.find(rounded(out));
    REQUIRE(found != places.end());
    ++seen[found->second];
  }
  CHECK(seen.size() == 50);
  for (const auto& [place, count] : seen) CHECK(count == Approx(kDraws / 50).margin(50));  // 5 standard deviations
}

TEST_CASE("what is not asked for is not drawn") {
  std::vector<float> plain(25), out(25);
  image({}).read(0, nullptr, plain.data());
  for (int i = 0; i < 20; ++i) {
    const Draw draw(1, 0, i);
    image({}).read(0, &draw, out.data());
    CHECK(out == plain);
  }
}

TEST_CASE("a draw depends on seed, epoch and sample, and on nothing else") {
  const Draw draw(1, 2, 3);
  CHECK(draw.uniform(4) == Draw(1, 2, 3).uniform(4));
  CHECK(draw.uniform(4) != Draw(2, 2, 3).uniform(4));
  CHECK(draw.uniform(4) != Draw(1, 3, 3).uniform(4));
  CHECK(draw.uniform(4) != Draw(1, 2, 4).uniform(4));
  CHECK(draw.uniform(4) != draw.uniform(5));
  CHECK(Draw(1, 2, 3).uniform(Draw::kSlots) == Draw(1, 2, 4).uniform(0));  // neighbours do not overlap
}

TEST_CASE("padding is done before normalisation: it shows the value of a black pixel") {
  ImageTable table{{1, 1, 2}, 1, {255, 255}, {0}};
  const MemoryImages images(std::move(table), {.pad_crop = 1}, Normalizer({{0.5f, 0.25f}, {0.5f, 0.5f}}), 0);
  std::vector<float> out(2);
  bool black = false, white = false;
  for (int i = 0; i < 100; ++i) {
    const Draw draw(1, 0, i);
    images.read(0, &draw, out.data());
    if (out[0] == 1.f) {
      white = true;
      CHECK(out[1] == 1.5f);
    } else {
      black = true;
      CHECK(out == std::vector<float>{-1.f, -0.5f});
    }
  }
  CHECK(black);
  CHECK(white);
}

TEST_CASE("pad_to centres the image") {
  const MemoryImages images = image({}, 8);
  REQUIRE(images.shape() == ImageShape{8, 8, 1});
  std::vector<float> out(64);
  images.read(0, nullptr, out.data());
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      const bool inside = y >= 1 && y < 6 && x >= 1 && x < 6;
      const double want = inside ? (y - 1) * 5 + x - 1 + 1 : 0;
      CHECK(out[static_cast<size_t>(y * 8 + x)] == Approx(want).margin(1e-6));
    }
  }
}

// The config knows what size images of a set usually have; an idx file may hold larger ones.
TEST_CASE("images that are larger than what they are to be padded to are refused") {
  CHECK(user_error([] { image({}, kSide - 1); }) == "data.pad_to: 4 is less than the images' 5 x 5 pixels");
  CHECK_NOTHROW(image({}, kSide));
  for (const ImageShape& shape : {ImageShape{4, 6, 1}, ImageShape{6, 4, 1}}) {
    CHECK_THAT(user_error([&] {
                 MemoryImages(ImageTable{shape, 10, counting(24), {3}}, {}, Normalizer({{0.f}, {1.f}}), 5);
               }),
               Catch::Contains("5 is less than the images'"));
  }
}

TEST_CASE("sets differ in their fingerprints where their labels or their images do, the last ones too") {
  const auto fingerprint = [](const Bytes& pixels, const Bytes& labels) {
    return MemoryImages(ImageTable{{1, 1, 1}, 10, pixels, labels}, {}, Normalizer({{0.f}, {1.f}}), 0).fingerprint();
  };
  const Bytes pixels = counting(64), labels(64);
  CHECK(fingerprint(pixels, labels) == fingerprint(pixels, labels));
  Bytes others = pixels, named = labels;
  others[60] = 0;  // of 64 images every fourth counts
  named[60] = 1;
  CHECK(fingerprint(others, labels) != fingerprint(pixels, labels));
  CHECK(fingerprint(pixels, named) != fingerprint(pixels, labels));
  CHECK(fingerprint({1, 2, 3}, {0, 0, 0}) != fingerprint({1, 2, 4}, {0, 0, 0}));  // of fewer than 16 all count
}

TEST_CASE("fractional pixels are normalised as whole ones are") {
  const Normalizer normalizer({{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}});
  for (int v = 0; v < 256; ++v) {
    std::vector<float> pixel(3, static_cast<float>(v));
    normalizer.apply(pixel.data(), 1);
    for (int c = 0; c < 3; ++c) {
      CHECK(pixel[static_cast<size_t>(c)] == Approx(normalizer.table()[c * 256 + v]).margin(1e-6));
    }
  }
}

}  // namespace
}  // namespace dgc
