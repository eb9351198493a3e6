#include "data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/errors.h"
#include "tensor/simd.h"

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

// Rows are narrowed kRows at a time: a vector holds a pixel of each, which is its three channels and one number that
// nobody looks at. The compiler splits such vectors where registers are shorter.
constexpr int64_t kRows = 4, kPixel = 4;
using Channels = float __attribute__((vector_size(kPixel * sizeof(float))));
using Numbers = float __attribute__((vector_size(kRows * kPixel * sizeof(float))));
constexpr auto kNumbers = static_cast<int64_t>(sizeof(Numbers) / sizeof(float));

// rows: [pixels, 3] each. out: [pixels] vectors.
DGC_MULTIVERSION
void interleave(const uint8_t* const* rows, int64_t pixels, float* out) {
  using Integers = int32_t __attribute__((vector_size(kPixel * sizeof(int32_t))));
  const int64_t last = pixels - 1;
  for (int64_t x = 0; x < last; ++x) {
    for (int64_t r = 0; r < kRows; ++r, out += kPixel) {
      const uint8_t* from = rows[r] + x * 3;
      const Integers integers = {from[0], from[1], from[2], from[3]};
      const Channels channels = __builtin_convertvector(integers, Channels);
      std::memcpy(out, &channels, sizeof(channels));
    }
  }
  for (int64_t r = 0; r < kRows; ++r, out += kPixel) {  // the byte behind the last pixel may be behind the image
    for (int64_t c = 0; c < 3; ++c) out[c] = rows[r][last * 3 + c];
    out[3] = 0;
  }
}

// line: vectors, the first one of source column `first`. out: kRows rows of [count, 3], `stride` numbers apart; the
// number behind each row is overwritten.
DGC_MULTIVERSION
void narrow_rows(const float* line, int64_t first, const ResizeTaps& columns, int64_t stride, float* out) {
  const float* weight = columns.weight.data();
  for (const int64_t begin : columns.begin) {
    const float* pixel = line + (begin - first) * kNumbers;
    Numbers sum{};
    for (int64_t t = 0; t < columns.taps; ++t, pixel += kNumbers) {
      Numbers numbers;
      std::memcpy(&numbers, pixel, sizeof(numbers));
      sum += weight[t] * numbers;
    }
    for (int64_t r = 0; r < kRows; ++r) {
      std::memcpy(out + r * stride, reinterpret_cast<const float*>(&sum) + r * kPixel, kPixel * sizeof(float));
    }
    weight += columns.taps;
    out += 3;
  }
}

// One output row: the weighted sum of `taps` rows of `width` numbers, `stride` apart.
DGC_MULTIVERSION
void add_rows(const float* rows, int64_t stride, const float* weight, int64_t taps, int64_t width, float* out) {
  int64_t x = 0;
  for (; x + kNumbers <= width; x += kNumbers) {
    Numbers sum{};
    for (int64_t t = 0; t < taps; ++t) {
      Numbers numbers;
      std::memcpy(&numbers, rows + t * stride + x, sizeof(numbers));
      sum += weight[t] * numbers;
    }
    std::memcpy(out + x, &sum, sizeof(sum));
  }
  for (; x < width; ++x) {
    float sum = 0;
    for (int64_t t = 0; t < taps; ++t) sum += weight[t] * rows[t * stride + x];
    out[x] = sum;
  }
}

// Room for so many numbers. Memory that shrinks and grows again would be zeroed each time.
float* at_least(int64_t numbers, std::vector<float>& memory) {
  if (std::ssize(memory) < numbers) memory.resize(static_cast<size_t>(numbers));
  return memory.data();
}

}  // namespace

void resize_rgb(const uint8_t* in, int64_t stride, const ResizeAxis& rows, const ResizeAxis& columns,
                ResizeScratch& scratch, float* out) {
  make_taps(rows, scratch.rows);
  make_taps(columns, scratch.columns);
  if (rows.count == 0 || columns.count == 0) return;
  const int64_t taps = scratch.rows.taps, width = columns.count * 3, apart = width + 1;
  const int64_t first = scratch.rows.begin.front(), last = scratch.rows.begin.back() + taps - 1;
  const int64_t left = scratch.columns.begin.front();
  const int64_t pixels = scratch.columns.begin.back() + scratch.columns.taps - left;
  float* const line = at_least(pixels * kNumbers, scratch.line);
  float* const narrowed = at_least((last - first + kRows) * apart, scratch.narrowed);
  int64_t done = 0;  // output rows
  for (int64_t y = first; y <= last; y += kRows) {
    const uint8_t* together[kRows];
    for (int64_t r = 0; r < kRows; ++r) together[r] = in + std::min(y + r, last) * stride + left * 3;
    interleave(together, pixels, line);
    narrow_rows(line, left, scratch.columns, apart, narrowed + (y - first) * apart);
    // An output row comes as soon as it can, while its source rows are in the cache.
    for (; done < rows.count && scratch.rows.begin[static_cast<size_t>(done)] + taps <= y + kRows; ++done) {
      const float* top = narrowed + (scratch.rows.begin[static_cast<size_t>(done)] - first) * apart;
      add_rows(top, apart, scratch.rows.weight.data() + done * taps, taps, width, out + done * width);
    }
  }
}

}  // namespace dgc
