#include "data/images/resize.h"

#include <cmath>
#include <numeric>

#include "tests/data/fixtures.h"

namespace dgc {
namespace {

std::vector<float> resize(const Bytes& in, const ResizeAxis& rows, const ResizeAxis& columns) {
  ResizeScratch scratch;
  std::vector<float> out(static_cast<size_t>(rows.count * columns.count * 3), -1.f);
  resize_rgb(in.data(), columns.in * 3, rows, columns, scratch, out.data());
  return out;
}

ResizeAxis whole(int64_t in, int64_t out) { return {in, 0, static_cast<double>(in), out, 0, out}; }

// A row whose three channels are value, 2 * value and 0.
Bytes row(const std::vector<int>& values) {
  Bytes out;
  for (const int v : values) out.insert(out.end(), {static_cast<uint8_t>(v), static_cast<uint8_t>(2 * v), 0});
  return out;
}

void check_row(const std::vector<float>& out, const std::vector<double>& want) {
  REQUIRE(out.size() == want.size() * 3);
  for (size_t i = 0; i < want.size(); ++i) {
    CHECK(out[3 * i] == Approx(want[i]).margin(1e-3));
    CHECK(out[3 * i + 1] == Approx(2 * want[i]).margin(1e-3));
    CHECK(out[3 * i + 2] == 0);
  }
}

TEST_CASE("resize: the same size changes nothing") {
  const Bytes pixels = counting(5 * 7 * 3);
  const std::vector<float> out = resize(pixels, whole(5, 5), whole(7, 7));
  for (size_t i = 0; i < pixels.size(); ++i) CHECK(out[i] == static_cast<float>(pixels[i]));
}

TEST_CASE("resize: numbers by hand, along each axis") {
  // Enlarging twice: bilinear, centres at -1/4, 1/4, 3/4 ... of the source, held at the border.
  const std::vector<double> doubled = {10, 15, 25, 30};
  // Halving: a triangle over four pixels with weights 1, 3, 3, 1, cut off at the border.
  const std::vector<double> halved = {(3. * 8 + 3 * 16 + 1 * 40) / 7, (16. + 3 * 40 + 3 * 64) / 7};
  check_row(resize(row({10, 30}), whole(1, 1), whole(2, 4)), doubled);
  check_row(resize(row({10, 30}), whole(2, 4), whole(1, 1)), doubled);
  check_row(resize(row({8, 16, 40, 64}), whole(1, 1), whole(4, 2)), halved);
  check_row(resize(row({8, 16, 40, 64}), whole(4, 2), whole(1, 1)), halved);
  check_row(resize(row({9, 30, 90}), whole(1, 1), whole(3, 1)), {(2. * 9 + 3 * 30 + 2 * 90) / 7});
}

TEST_CASE("resize: weights sum to 1, lie inside, and a ramp stays a ramp away from the border") {
  ResizeTaps taps;
  for (const int64_t in : {1, 2, 15, 16, 17, 100, 1000}) {
    for (const int64_t out : {1, 2, 15, 16, 17, 224}) {
      make_taps(whole(in, out), taps);
      const double scale = static_cast<double>(in) / static_cast<double>(out), radius = std::max(scale, 1.0);
      for (int64_t i = 0; i < out; ++i) {
        double sum = 0, mean = 0;
        for (int64_t t = 0; t < taps.taps; ++t) {
          const double w = taps.weight[static_cast<size_t>(i * taps.taps + t)];
          sum += w;
          mean += w * (static_cast<double>(taps.begin[static_cast<size_t>(i)] + t) + 0.5);
        }
        REQUIRE(sum == Approx(1));
        REQUIRE(taps.begin[static_cast<size_t>(i)] >= 0);
        REQUIRE(taps.begin[static_cast<size_t>(i)] + taps.taps <= in);
        const double centre = (static_cast<double>(i) + 0.5) * scale;
        const bool inside = centre - radius >= 0 && centre + radius <= static_cast<double>(in);
        // Sampled triangles have their mean at the centre only up to sampling, which half a pixel bounds amply.
        if (inside) REQUIRE(std::abs(mean - centre) < 0.5);
      }
    }
  }
}

TEST_CASE("resize: a window is that part of the whole") {
  const Bytes pixels = counting(20 * 30 * 3);
  const std::vector<float> all = resize(pixels, whole(20, 9), whole(30, 40));
  const std::vector<float> part = resize(pixels, {20, 0, 20, 9, 2, 5}, {30, 0, 30, 40, 11, 7});
  for (size_t y = 0; y < 5; ++y) {
    for (size_t x = 0; x < 7 * 3; ++x) CHECK(part[y * 21 + x] == all[(y + 2) * 120 + 33 + x]);
  }
}

TEST_CASE("resize: a stretch of pixels is resized as if it were alone, but for what its border sees") {
  const Bytes pixels = row({10, 20, 30, 40, 50, 60, 70, 80});
  // Pixels 2 to 5 become two: centres at 3 and 5, and a triangle over four pixels with weights 1, 3, 3, 1.
  const std::vector<float> part = resize(pixels, whole(1, 1), {8, 2, 4, 2, 0, 2});
  check_row(part, {(20. + 3 * 30 + 3 * 40 + 50) / 8, (40. + 3 * 50 + 3 * 60 + 70) / 8});
  // From the middle of pixel 1 to that of pixel 5: four become four, each halfway between two pixels.
  check_row(resize(pixels, whole(1, 1), {8, 1.5, 4, 4, 0, 4}), {25, 35, 45, 55});
}

TEST_CASE("resize: no tap is 0 for all output pixels") {
  ResizeTaps taps;
  make_taps(whole(300, 224), taps);
  CHECK(taps.taps == 3);  // a filter of 2 x 300 / 224 pixels
  make_taps(whole(7, 7), taps);
  CHECK(taps.taps == 1);
}

// Rows come several at a time and channels as parts of vectors, which must not show.
TEST_CASE("resize: every number is the sum over its columns, and then over its rows, in their order") {
  const auto [height, width, out_height, out_width] =
      GENERATE(table<int64_t, int64_t, int64_t, int64_t>({{1, 1, 3, 2}, {5, 9, 4, 7}, {11, 6, 3, 6}, {8, 40, 9, 17}}));
  const Bytes pixels = counting(static_cast<size_t>(height * width * 3));
  ResizeTaps rows, columns;
  make_taps(whole(height, out_height), rows);
  make_taps(whole(width, out_width), columns);
  const auto narrowed = [&, width = width](int64_t y, size_t x, int64_t c) {
    float sum = 0;
    for (int64_t t = 0; t < columns.taps; ++t) {
      const int64_t from = (y * width + columns.begin[x] + t) * 3 + c;
      sum += columns.weight[x * static_cast<size_t>(columns.taps) + static_cast<size_t>(t)] *
             static_cast<float>(pixels[static_cast<size_t>(from)]);
    }
    return sum;
  };
  std::vector<float> want;
  for (size_t y = 0; y < rows.begin.size(); ++y) {
    for (size_t x = 0; x < columns.begin.size(); ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        float sum = 0;
        for (int64_t t = 0; t < rows.taps; ++t) {
          sum += rows.weight[y * static_cast<size_t>(rows.taps) + static_cast<size_t>(t)] *
                 narrowed(rows.begin[y] + t, x, c);
        }
        want.push_back(sum);
      }
    }
  }
  CHECK(resize(pixels, whole(height, out_height), whole(width, out_width)) == want);
}

}  // namespace
}  // namespace dgc
