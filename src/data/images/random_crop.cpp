#include "data/images/random_crop.h"

#include <algorithm>
#include <cmath>

namespace dgc {
namespace {

constexpr uint64_t kTries = 10;
static_assert(kTries * 4 == kRandomCropSlots && kRandomCropSlots < Draw::kSlots);

// Bounds are rounded to float, because the boxes depend on this rounding, and results must stay the same.
double bound(double option) { return static_cast<float>(option); }

CropBox largest_centred(int64_t height, int64_t width, const AugmentOptions& o) {
  CropBox box{0, 0, height, width};
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (ratio < bound(o.min_ratio)) {
    box.height = std::clamp<int64_t>(std::lround(static_cast<double>(width) / bound(o.min_ratio)), 1, height);
  } else if (ratio > bound(o.max_ratio)) {
    box.width = std::clamp<int64_t>(std::lround(static_cast<double>(height) * bound(o.max_ratio)), 1, width);
  }
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

}  // namespace

CropBox random_resized_crop(int64_t height, int64_t width, const AugmentOptions& o, const Draw& draw) {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const double low = std::log(bound(o.min_ratio)), high = std::log(bound(o.max_ratio));
  for (uint64_t t = 0; t < kTries; ++t) {
    const double target = area * between(bound(o.min_scale), bound(o.max_scale), draw.uniform(4 * t));
    const double ratio = std::exp(between(low, high, draw.uniform(4 * t + 1)));
    const int64_t w = std::lround(std::sqrt(target * ratio)), h = std::lround(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {draw.below(4 * t + 2, static_cast<uint32_t>(height - h + 1)),
            draw.below(4 * t + 3, static_cast<uint32_t>(width - w + 1)), h, w};
  }
  return largest_centred(height, width, o);
}

}  // namespace dgc
