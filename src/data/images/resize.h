#pragma once

#include <cstdint>
#include <vector>

namespace dgc {

// One axis of a resize: of `in` pixels, the stretch from `from` to `from` + `span` becomes `out` pixels, of which
// `count` are wanted, beginning with `first`. A pixel is one long, and the stretch may begin and end within a pixel.
struct ResizeAxis {
  int64_t in = 0;
  double from = 0, span = 0;
  int64_t out = 0, first = 0, count = 0;
};

// Which source pixels make an output pixel. Output i is the sum over t < taps of weight[i * taps + t] * in[begin[i] +
// t]. There are no more taps than the output pixel with the most weights other than 0 needs.
struct ResizeTaps {
  int64_t taps = 0;
  std::vector<int64_t> begin;
  std::vector<float> weight;
};

// Makes the taps of a triangle filter that is centred on the output pixel. The filter is one source pixel wide when
// enlarging (bilinear) and as wide as an output pixel when shrinking, so that every source pixel counts (no aliasing).
// It is cut off at the border and normalised to sum 1.
void make_taps(const ResizeAxis&, ResizeTaps& out);

// Memory of resize_rgb() that is kept between calls.
struct ResizeScratch {
  ResizeTaps rows, columns;
  std::vector<float> line, narrowed;
};

// Resizes 8-bit RGB whose rows are `stride` bytes apart. out: [rows.count, columns.count, 3], in 0 ... 255, not
// rounded.
void resize_rgb(const uint8_t* in, int64_t stride, const ResizeAxis& rows, const ResizeAxis& columns,
                ResizeScratch& scratch, float* out);

}  // namespace dgc
