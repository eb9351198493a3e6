// The inner loop runs over channels, so the weights are transposed first, to [context, channels] in scratch memory.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

DGC_MULTIVERSION void add_product(const float* w, const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += w[i] * x[i];
}

const float* turned(const LookaheadArgs& a, const float* w, float* to) {
  for (int64_t c = 0; c < a.channels; ++c) {
    for (int64_t k = 0; k < a.context; ++k) to[k * a.channels + c] = w[c * a.context + k];
  }
  return to;
}

// y[t] = sum of w[k] * x[t + k * direction] over the steps that exist. The output looks at later steps (direction 1),
// the gradient of the input at earlier ones (direction -1).
constexpr int64_t kLater = 1, kEarlier = -1;
void weighted_sums(const LookaheadArgs& a, int64_t direction, const float* x, const float* w, float* y) {
  const int64_t row = a.streams * a.channels;
  for_chunks(a.steps, 1, [=](int64_t t, int64_t) {
    std::fill_n(y + t * row, row, 0.f);
    for (int64_t k = 0, from = t; k < a.context && from >= 0 && from < a.steps; ++k, from += direction) {
      for (int64_t s = 0; s < a.streams; ++s) {
        add_product(w + k * a.channels, x + from * row + s * a.channels, a.channels, y + t * row + s * a.channels);
      }
    }
  });
}

}  // namespace

void CpuBackend::lookahead_forward(const LookaheadArgs& a, ConstView x, ConstView w, View y) {
  const float* const by = turned(a, w.f32(), scratch_floats(a.context * a.channels));
  weighted_sums(a, kLater, x.f32(), by, y.f32());
}

void CpuBackend::lookahead_backward(const LookaheadArgs& a, ConstView x, ConstView w, ConstView dy, View dx, View dw) {
  float* const memory = scratch_floats(2 * a.context * a.channels);
  const float* const by = turned(a, w.f32(), memory);
  float* const sums = memory + a.context * a.channels;
  const int64_t row = a.streams * a.channels;
  const float *const from = x.f32(), *const g = dy.f32();
  if (dx) weighted_sums(a, kEarlier, g, by, dx.f32());
  for_chunks(a.context, 1, [&](int64_t k, int64_t) {
    float* const sum = sums + k * a.channels;
    std::fill_n(sum, a.channels, 0.f);
    for (int64_t t = 0; t + k < a.steps; ++t) {
      for (int64_t s = 0; s < a.streams; ++s) {
        add_product(g + t * row + s * a.channels, from + (t + k) * row + s * a.channels, a.channels, sum);
      }
    }
  });
  for (int64_t c = 0; c < a.channels; ++c) {
    for (int64_t k = 0; k < a.context; ++k) dw.f32()[c * a.context + k] += sums[k * a.channels + c];
  }
}

}  // namespace dgc
