#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace dgc {
class CudaBackend;
}

namespace dgc::cuda {

// The windows of a convolution along one axis: tap k of window i meets pixel (i * step + k - pad) / spread, where that
// is a whole number of [0, pixels). A spread above 1 stands for an image with so many places for each pixel, all but
// the first of them 0.
struct WindowAxis {
  int pixels = 0, windows = 0, taps = 1, step = 1, pad = 0, spread = 1;
};

struct Windows {
  WindowAxis h, w;
  int groups = 1;
  int channels = 0;  // of one group

  int64_t per_image() const { return int64_t{h.windows} * w.windows; }
  int64_t taps() const { return int64_t{h.taps} * w.taps; }
  int64_t columns() const { return groups * taps() * channels; }
};

// Windows of NHWC images as the rows of a matrix (im2col.cuh): columns [count, groups, taps, channels of a group] are
// the windows [first, first + count) of all images' in one row. Throws InternalError at 2^31 numbers or more.
void im2col(CudaBackend&, const Windows&, int64_t first, int64_t count, ConstView image, void* columns);

}  // namespace dgc::cuda
