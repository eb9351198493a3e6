#pragma once

#include <cstdint>

#include "data/images/crop_box.h"
#include "data/images/image_dataset.h"
#include "data/images/options.h"

namespace dgc {

constexpr uint64_t kRandomCropSlots = 40;  // slots of Draw, from 0, that random_resized_crop may use

// The box that is resized to the training image (Szegedy et al., "Going deeper with convolutions", 2014, section 6): a
// share of the area uniform in [min_scale, max_scale], an aspect ratio log-uniform in [min_ratio, max_ratio], at a
// uniform place. After ten boxes that do not fit, it is the largest centred box within the ratios.
CropBox random_resized_crop(int64_t height, int64_t width, const AugmentOptions&, const Draw&);

}  // namespace dgc
