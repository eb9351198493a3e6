#include "data/images/random_crop.h"

#include <cmath>

#include "tests/data/fixtures.h"

namespace dgc {
namespace {

TEST_CASE("random-resized-crop: inside the image, area and ratio as asked, spread evenly") {
  const AugmentOptions options;
  const double low = std::log(3. / 4), high = std::log(4. / 3);
  constexpr int kDraws = 20000;
  double scale_sum = 0, top_sum = 0, left_sum = 0;
  double diagonal = 0;
  int wide = 0;
  for (int i = 0; i < kDraws; ++i) {
    // So large that hardly a box is turned down, so that the means are those of the uniform distributions.
    const CropBox box = random_resized_crop(4000, 4000, {.max_scale = 0.5f}, Draw(1, 0, i));
    REQUIRE(box.top >= 0);
    REQUIRE(box.left >= 0);
    REQUIRE(box.top + box.height <= 4000);
    REQUIRE(box.left + box.width <= 4000);
    const double scale = static_cast<double>(box.height * box.width) / 16e6;
    const double ratio = std::log(static_cast<double>(box.width) / static_cast<double>(box.height));
    REQUIRE(scale > 0.08 * 0.998);
    REQUIRE(scale < 0.5 * 1.002);
    REQUIRE(ratio > low - 0.002);
    REQUIRE(ratio < high + 0.002);
    scale_sum += scale;
    wide += ratio > 0;
    const double top = static_cast<double>(box.top) / static_cast<double>(4000 - box.height);
    const double left = static_cast<double>(box.left) / static_cast<double>(4000 - box.width);
    top_sum += top;
    left_sum += left;
    diagonal += std::abs(top - left);
  }
  CHECK(scale_sum / kDraws == Approx(0.29).margin(0.005));
  CHECK(static_cast<double>(wide) / kDraws == Approx(0.5).margin(0.02));
  CHECK(top_sum / kDraws == Approx(0.5).margin(0.02));
  CHECK(left_sum / kDraws == Approx(0.5).margin(0.02));
  CHECK(diagonal / kDraws == Approx(1. / 3).margin(0.02));  // of two numbers that are drawn independently
  CHECK(random_resized_crop(100, 80, options, Draw(1, 2, 3)) == random_resized_crop(100, 80, options, Draw(1, 2, 3)));
}

TEST_CASE("random-resized-crop: the whole image when that is all that is allowed") {
  const AugmentOptions options{.min_scale = 1, .max_scale = 1, .min_ratio = 1, .max_ratio = 1};
  CHECK(random_resized_crop(50, 50, options, Draw(1, 0, 0)) == CropBox{0, 0, 50, 50});
}

TEST_CASE("random-resized-crop: the largest centred box where nothing fits") {
  const AugmentOptions options{.min_scale = 1, .max_scale = 1};
  CHECK(random_resized_crop(30, 300, options, Draw(1, 0, 0)) == CropBox{0, 130, 30, 40});
  CHECK(random_resized_crop(300, 30, options, Draw(1, 0, 0)) == CropBox{130, 0, 40, 30});
  CHECK(random_resized_crop(1, 1, options, Draw(1, 0, 0)) == CropBox{0, 0, 1, 1});
}

}  // namespace
}  // namespace dgc
