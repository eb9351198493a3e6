#include "data/images/resize.h"

#include <algorithm>
#include <cmath>

#include "tensor/errors.h"

namespace dgc {

void make_taps(const ResizeAxis& a, ResizeTaps& out) {
  DGC_CHECK(a.in >= 1 && a.out >= 1 && a.first >= 0 && a.count >= 0 && a.first + a.count <= a.out, "resize axis");
  const double scale = static_cast<double>(a.in) / static_cast<double>(a.out);
  const double radius = std::max(scale, 1.0);
  out.taps = std::min(a.in, static_cast<int64_t>(std::ceil(radius)) * 2 + 1);
  out.begin.resize(static_cast<size_t>(a.count));
  out.weight.resize(static_cast<size_t>(a.count * out.taps));
  for (int64_t i = 0; i < a.count; ++i) {
    const double centre = (static_cast<double>(a.first + i) + 0.5) * scale;
    const auto lowest = static_cast<int64_t>(std::floor(centre - radius));
    const int64_t begin = std::clamp<int64_t>(lowest, 0, a.in - out.taps);
    float* weight = out.weight.data() + i * out.taps;
    double sum = 0;
    for (int64_t t = 0; t < out.taps; ++t) {
      const double distance = std::abs(static_cast<double>(begin + t) + 0.5 - centre);
      const double w = std::max(0.0, 1.0 - distance / radius);
      weight[t] = static_cast<float>(w);
      sum += w;
    }
    for (int64_t t = 0; t < out.taps; ++t) weight[t] = static_cast<float>(static_cast<double>(weight[t]) / sum);
    out.begin[static_cast<size_t>(i)] = begin;
  }
}

namespace {

// One row: [in, 3] bytes -> [count, 3] floats.
void narrow_row(const uint8_t* in, const ResizeTaps& columns, float* out) {
  for (size_t x = 0; x < columns.begin.size(); ++x) {
    const uint8_t* pixel = in + columns.begin[x] * 3;
    const float* weight = columns.weight.data() + static_cast<int64_t>(x) * columns.taps;
    float r = 0, g = 0, b = 0;
    for (int64_t t = 0; t < columns.taps; ++t, pixel += 3) {
      r += weight[t] * static_cast<float>(pixel[0]);
      g += weight[t] * static_cast<float>(pixel[1]);
      b += weight[t] * static_cast<float>(pixel[2]);
    }
    *out++ = r;
    *out++ = g;
    *out++ = b;
  }
}

}  // namespace

void resize_rgb(const uint8_t* in, int64_t stride, const ResizeAxis& rows, const ResizeAxis& columns,
                ResizeScratch& scratch, float* out) {
  make_taps(rows, scratch.rows);
  make_taps(columns, scratch.columns);
  if (rows.count == 0 || columns.count == 0) return;
  const int64_t taps = scratch.rows.taps, width = columns.count * 3;
  const int64_t first = scratch.rows.begin.front(), end = scratch.rows.begin.back() + taps;
  scratch.narrowed.resize(static_cast<size_t>((end - first) * width));
  for (int64_t y = first; y < end; ++y) {
    narrow_row(in + y * stride, scratch.columns, scratch.narrowed.data() + (y - first) * width);
  }
  for (int64_t y = 0; y < rows.count; ++y, out += width) {
    std::fill(out, out + width, 0.f);
    const float* line = scratch.narrowed.data() + (scratch.rows.begin[static_cast<size_t>(y)] - first) * width;
    for (int64_t t = 0; t < taps; ++t, line += width) {
      const float weight = scratch.rows.weight[static_cast<size_t>(y * taps + t)];
      for (int64_t x = 0; x < width; ++x) out[x] += weight * line[x];
    }
  }
}

}  // namespace dgc
