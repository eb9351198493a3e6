// Ops that move pixels: global mean, option-A shortcut, transpose.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

DGC_MULTIVERSION void mean_of_rows(const float* x, int64_t rows, int64_t channels, float* y) {
  for (int64_t c = 0; c < channels; ++c) y[c] = 0;
  for (int64_t r = 0; r < rows; ++r, x += channels) {
    for (int64_t c = 0; c < channels; ++c) y[c] += x[c];
  }
  const float share = 1.f / static_cast<float>(rows);
  for (int64_t c = 0; c < channels; ++c) y[c] *= share;
}

DGC_MULTIVERSION void spread_over_rows(const float* dy, int64_t rows, int64_t channels, float* dx) {
  const float share = 1.f / static_cast<float>(rows);
  for (int64_t r = 0; r < rows; ++r, dx += channels) {
    for (int64_t c = 0; c < channels; ++c) dx[c] = dy[c] * share;
  }
}

// to [columns, rows] = from [rows, columns], in squares that fit into the cache.
void turn(const float* from, int64_t rows, int64_t columns, float* to) {
  if (rows == 1 || columns == 1) {
    std::copy_n(from, rows * columns, to);
    return;
  }
  constexpr int64_t kSide = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kSide) {
    for (int64_t c0 = 0; c0 < columns; c0 += kSide) {
      for (int64_t c = c0; c < std::min(columns, c0 + kSide); ++c) {
        for (int64_t r = r0; r < std::min(rows, r0 + kSide); ++r) to[c * rows + r] = from[r * columns + c];
      }
    }
  }
}

}  // namespace

void CpuBackend::global_pool_forward(const GlobalPoolArgs& args, ConstView x, View y) {
  const float* const from = x.f32();
  float* const to = y.f32();
  for_chunks(args.batch, 1, [&](int64_t i, int64_t) {
    mean_of_rows(from + i * args.spatial * args.channels, args.spatial, args.channels, to + i * args.channels);
  });
}

void CpuBackend::global_pool_backward(const GlobalPoolArgs& args, ConstView dy, View dx) {
  const float* const from = dy.f32();
  float* const to = dx.f32();
  for_chunks(args.batch, 1, [&](int64_t i, int64_t) {
    spread_over_rows(from + i * args.channels, args.spatial, args.channels, to + i * args.spatial * args.channels);
  });
}

void CpuBackend::shortcut_forward(const ShortcutArgs& args, ConstView x, View y) {
  const float* const from = x.f32();
  float* const to = y.f32();
  const int64_t before = (args.out_c - args.in_c) / 2, behind = args.out_c - args.in_c - before;
  for_chunks(args.batch * args.out_h(), 1, [&](int64_t row, int64_t) {
    const int64_t image = row / args.out_h(), h = row % args.out_h() * args.stride;
    const float* pixel = from + (image * args.in_h + h) * args.in_w * args.in_c;
    float* out = to + row * args.out_w() * args.out_c;
    for (int64_t w = 0; w < args.out_w(); ++w, pixel += args.stride * args.in_c) {
      std::memset(out, 0, float_bytes(before));
      std::memcpy(out + before, pixel, float_bytes(args.in_c));
      std::memset(out + before + args.in_c, 0, float_bytes(behind));
      out += args.out_c;
    }
  });
}

void CpuBackend::shortcut_backward(const ShortcutArgs& args, ConstView dy, View dx) {
  const float* const from = dy.f32();
  float* const to = dx.f32();
  const int64_t before = (args.out_c - args.in_c) / 2;
  for_chunks(args.batch * args.in_h, 1, [&](int64_t row, int64_t) {
    const int64_t image = row / args.in_h, h = row % args.in_h;
    float* const out = to + row * args.in_w * args.in_c;
    if (args.stride > 1) std::memset(out, 0, float_bytes(args.in_w * args.in_c));
    if (h % args.stride != 0) return;
    const float* const pixels = from + (image * args.out_h() + h / args.stride) * args.out_w() * args.out_c;
    for (int64_t w = 0; w < args.out_w(); ++w) {
      std::memcpy(out + w * args.stride * args.in_c, pixels + w * args.out_c + before, float_bytes(args.in_c));
    }
  });
}

void CpuBackend::transpose(const TransposeArgs& args, ConstView x, View y) {
  const float* const from = x.f32();
  float* const to = y.f32();
  const int64_t size = args.rows * args.columns;
  for_chunks(args.inner * args.outer, std::max<int64_t>(1, kElementwiseChunk / size), [&](int64_t first, int64_t n) {
    for (int64_t at = first; at < first + n; ++at) {
      turn(from + (at % args.outer * args.inner + at / args.outer) * size, args.rows, args.columns, to + at * size);
    }
  });
}

}  // namespace dgc
