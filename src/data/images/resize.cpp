#include "data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/errors.h"

namespace dgc {

namespace {

// Leaves out taps whose weight is 0, as far as all output pixels can do with fewer: the number of taps below is a bound
// for all centres, of which few need it.
void trim(ResizeTaps& taps) {
  const int64_t bound = taps.taps, count = std::ssize(taps.begin);
  int64_t most = 1;
  for (int64_t i = 0; i < count; ++i) {
    const float* weight = taps.weight.data() + i * bound;
    int64_t first = 0, end = bound;
    while (first < bound - 1 && weight[first] == 0) ++first;
    while (end > first + 1 && weight[end - 1] == 0) --end;
    most = std::max(most, end - first);
  }
  for (int64_t i = 0; i < count; ++i) {
    const float* weight = taps.weight.data() + i * bound;
    int64_t first = 0;
    while (first < bound - most && weight[first] == 0) ++first;
    std::copy_n(weight + first, most, taps.weight.data() + i * most);
    taps.begin[static_cast<size_t>(i)] += first;
  }
  taps.taps = most;
}

}  // namespace

void make_taps(const ResizeAxis& a, ResizeTaps& out) {
  DGC_CHECK(a.in >= 1 && a.out >= 1 && a.first >= 0 && a.count >= 0 && a.first + a.count <= a.out, "resize axis");
  DGC_CHECK(a.from >= 0 && a.span > 0 && a.from + a.span <= static_cast<double>(a.in), "the stretch that is resized");
  const double scale = a.span / static_cast<double>(a.out);
  const double radius = std::max(scale, 1.0);
  out.taps = std::min(a.in, static_cast<int64_t>(std::ceil(radius)) * 2 + 1);
  out.begin.resize(static_cast<size_t>(a.count));
  out.weight.resize(static_cast<size_t>(a.count * out.taps));
  for (int64_t i = 0; i < a.count; ++i) {
    const double centre = a.from + (static_cast<double>(a.first + i) + 0.5) * scale;
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
  trim(out);
}

namespace {

// The channels of a pixel and the first one of the next, which nobody looks at: four numbers are one vector.
using Channels = float __attribute__((vector_size(4 * sizeof(float))));

// line: [in, 3] and one number more. out: [count, 3] and one number more.
void narrow_row(const float* line, const ResizeTaps& columns, float* out) {
  const float* weight = columns.weight.data();
  for (const int64_t begin : columns.begin) {
    const float* pixel = line + begin * 3;
    Channels sum{};
    for (int64_t t = 0; t < columns.taps; ++t, pixel += 3) {
      Channels channels;
      std::memcpy(&channels, pixel, sizeof(channels));
      sum += weight[t] * channels;
    }
    std::memcpy(out, &sum, sizeof(sum));
    weight += columns.taps;
    out += 3;
  }
}

// One output row: the weighted sum of `taps` rows of `width` numbers. Sums stay in registers, some columns at a time.
void add_rows(const float* rows, const float* weight, int64_t taps, int64_t width, float* out) {
  constexpr int64_t kTogether = 16;
  int64_t x = 0;
  for (; x + kTogether <= width; x += kTogether) {
    float sum[kTogether] = {};
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t i = 0; i < kTogether; ++i) sum[i] += weight[t] * rows[t * width + x + i];
    }
    std::copy_n(sum, kTogether, out + x);
  }
  for (; x < width; ++x) {
    float sum = 0;
    for (int64_t t = 0; t < taps; ++t) sum += weight[t] * rows[t * width + x];
    out[x] = sum;
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
  scratch.narrowed.resize(static_cast<size_t>((end - first) * width + 1));
  const int64_t begin = scratch.columns.begin.front() * 3;
  const int64_t past = (scratch.columns.begin.back() + scratch.columns.taps) * 3;
  scratch.line.resize(static_cast<size_t>(past + 1));
  float* line = scratch.line.data();
  for (int64_t y = first; y < end; ++y) {
    const uint8_t* bytes = in + y * stride;
    for (int64_t i = begin; i < past; ++i) line[i] = static_cast<float>(bytes[i]);
    narrow_row(line, scratch.columns, scratch.narrowed.data() + (y - first) * width);
  }
  for (int64_t y = 0; y < rows.count; ++y, out += width) {
    const float* top = scratch.narrowed.data() + (scratch.rows.begin[static_cast<size_t>(y)] - first) * width;
    add_rows(top, scratch.rows.weight.data() + y * taps, taps, width, out);
  }
}

}  // namespace dgc
