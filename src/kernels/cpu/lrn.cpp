// Local response normalisation, one pixel at a time. With s_c = k + alpha / size * (sum of x^2 over c's window):
//   y_c  = x_c * s_c^-beta
//   dx_c = dy_c * s_c^-beta - 2 alpha beta / size * x_c * sum over the windows that hold c of dy_j x_j s_j^(-beta - 1)
// The window of c is [c - size / 2, c + (size - 1) / 2], as in PyTorch.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

// to[c] = sum of from[c - before ... c + behind]. Each sum is made afresh, because a running sum would drift.
DGC_MULTIVERSION void window_sums(const float* from, int64_t n, int64_t before, int64_t behind, float* to) {
  for (int64_t c = 0; c < n; ++c) to[c] = 0;
  for (int64_t shift = -before; shift <= behind; ++shift) {
    const int64_t first = std::max<int64_t>(0, -shift), last = std::min(n, n - shift);
    for (int64_t c = first; c < last; ++c) to[c] += from[c + shift];
  }
}

// s^-beta. AlexNet's exponent of 3/4 needs only square roots, which vector instructions have; pow has none.
DGC_MULTIVERSION void powers(const float* s, int64_t n, float beta, float* to) {
  if (beta == 0.75f) {
    for (int64_t c = 0; c < n; ++c) {
      const float root = std::sqrt(s[c]);
      to[c] = 1 / (root * std::sqrt(root));
    }
  } else {
    for (int64_t c = 0; c < n; ++c) to[c] = std::pow(s[c], -beta);
  }
}

DGC_MULTIVERSION void scales(const LrnArgs& args, const float* x, float* square, float* s) {
  for (int64_t c = 0; c < args.channels; ++c) square[c] = x[c] * x[c];
  window_sums(square, args.channels, args.size / 2, (args.size - 1) / 2, s);
  const float share = args.alpha / static_cast<float>(args.size);
  for (int64_t c = 0; c < args.channels; ++c) s[c] = args.k + share * s[c];
}

DGC_MULTIVERSION void multiply(const float* a, const float* b, int64_t n, float* y) {
  for (int64_t c = 0; c < n; ++c) y[c] = a[c] * b[c];
}

DGC_MULTIVERSION void combine(const LrnArgs& args, const float* x, const float* dy, const float* power,
                              const float* sums, float* dx) {
  const float factor = 2 * args.alpha * args.beta / static_cast<float>(args.size);
  for (int64_t c = 0; c < args.channels; ++c) dx[c] = dy[c] * power[c] - factor * x[c] * sums[c];
}

}  // namespace

void CpuBackend::lrn_forward(const LrnArgs& args, ConstView x, View y) {
  const float* const from = x.f32();
  float* const to = y.f32();
  const int64_t n = args.channels;
  float* const room = scratch_floats(2 * n * omp_get_max_threads());
  for_chunks(args.batch * args.in_h, 1, [&](int64_t row, int64_t) {
    float *const square = room + 2 * n * omp_get_thread_num(), *const s = square + n;
    for (int64_t at = row * args.in_w * n; at < (row + 1) * args.in_w * n; at += n) {
      scales(args, from + at, square, s);
      powers(s, n, args.beta, s);
      multiply(from + at, s, n, to + at);
    }
  });
}

void CpuBackend::lrn_backward(const LrnArgs& args, ConstView x, ConstView dy, View dx) {
  const float *const from = x.f32(), *const gradient = dy.f32();
  float* const to = dx.f32();
  const int64_t n = args.channels;
  float* const room = scratch_floats(4 * n * omp_get_max_threads());
  for_chunks(args.batch * args.in_h, 1, [&](int64_t row, int64_t) {
    float *const a = room + 4 * n * omp_get_thread_num(), *const s = a + n, *const power = s + n,
                 *const sums = power + n;
    for (int64_t at = row * args.in_w * n; at < (row + 1) * args.in_w * n; at += n) {
      const float *const px = from + at, *const pg = gradient + at;
      scales(args, px, a, s);
      powers(s, n, args.beta, power);
      for (int64_t c = 0; c < n; ++c) a[c] = pg[c] * px[c] * power[c] / s[c];
      window_sums(a, n, (args.size - 1) / 2, args.size / 2, sums);  // mirrored: the windows that hold c
      combine(args, px, pg, power, sums, to + at);
    }
  });
}

}  // namespace dgc
