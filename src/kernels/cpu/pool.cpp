// Pooling over windows. For max, `saved` holds which tap of the window was the largest, in 16 bits per output. The
// inner loop runs over channels, so that vector instructions compare one tap of many channels.
#include <algorithm>
#include <limits>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

DGC_MULTIVERSION void take_larger(const float* x, uint16_t tap, int64_t channels, float* y, uint16_t* winner) {
  for (int64_t c = 0; c < channels; ++c) {
    const bool wins = x[c] > y[c] || x[c] != x[c];  // NaN wins and stays, so that a diverging net shows it
    y[c] = wins ? x[c] : y[c];
    winner[c] = wins ? tap : winner[c];
  }
}

DGC_MULTIVERSION void give_to_winner(const float* dy, const uint16_t* winner, uint16_t tap, int64_t channels,
                                     float* dx) {
  for (int64_t c = 0; c < channels; ++c) dx[c] += winner[c] == tap ? dy[c] : 0;
}

DGC_MULTIVERSION void add_scaled(const float* x, float scale, int64_t channels, float* y) {
  for (int64_t c = 0; c < channels; ++c) y[c] += scale * x[c];
}

// Calls visit(tap, offset of its pixel within the image) for the taps of window (oh, ow) that lie inside the image.
template <typename Visit>
void for_taps(const PoolArgs& a, int64_t oh, int64_t ow, const Visit& visit) {
  const int64_t top = oh * a.stride_h - a.pad_h, left = ow * a.stride_w - a.pad_w;
  for (int64_t kh = std::max<int64_t>(0, -top); kh < std::min(a.kernel_h, a.in_h - top); ++kh) {
    for (int64_t kw = std::max<int64_t>(0, -left); kw < std::min(a.kernel_w, a.in_w - left); ++kw) {
      visit(static_cast<uint16_t>(kh * a.kernel_w + kw), ((top + kh) * a.in_w + left + kw) * a.channels);
    }
  }
}

}  // namespace

void CpuBackend::pool_forward(const PoolArgs& args, ConstView x, View y, View saved) {
  const float* const from = x.f32();
  float* const to = y.f32();
  const int64_t channels = args.channels, line = args.out_w() * channels;
  const int64_t image_size = args.in_h * args.in_w * channels;
  // An evaluation does not use `saved`, but the loop is the same.
  auto* const winners = static_cast<uint16_t*>(saved ? saved.data : static_cast<void*>(scratch(args.saved_bytes())));
  for_chunks(args.batch * args.out_h(), 1, [&](int64_t row, int64_t) {
    const float* const image = from + row / args.out_h() * image_size;
    const int64_t oh = row % args.out_h();
    for (int64_t ow = 0; ow < args.out_w(); ++ow) {
      float* const out = to + row * line + ow * channels;
      if (args.kind == PoolKind::average) {
        std::fill_n(out, channels, 0.f);
        for_taps(args, oh, ow,
                 [&](uint16_t, int64_t at) { add_scaled(image + at, args.average_share(), channels, out); });
      } else {
        uint16_t* const winner = winners + row * line + ow * channels;
        std::fill_n(out, channels, -std::numeric_limits<float>::infinity());
        std::fill_n(winner, channels, uint16_t{0});
        for_taps(args, oh, ow, [&](uint16_t tap, int64_t at) { take_larger(image + at, tap, channels, out, winner); });
      }
    }
  });
}

// Windows overlap, so one thread takes a whole image. Then no two threads add to the same pixel, and the order of the
// additions is fixed.
void CpuBackend::pool_backward(const PoolArgs& args, ConstView dy, ConstView saved, View dx) {
  const float* const from = dy.f32();
  float* const to = dx.f32();
  const auto* const winners = static_cast<const uint16_t*>(saved.data);
  const int64_t channels = args.channels, image_size = args.in_h * args.in_w * channels;
  for_chunks(args.batch, 1, [&](int64_t i, int64_t) {
    float* const image = to + i * image_size;
    std::fill_n(image, image_size, 0.f);
    for (int64_t pixel = 0; pixel < args.out_h() * args.out_w(); ++pixel) {
      const int64_t oh = pixel / args.out_w(), ow = pixel % args.out_w();
      const int64_t out = (i * args.out_h() * args.out_w() + pixel) * channels;
      if (args.kind == PoolKind::average) {
        for_taps(args, oh, ow,
                 [&](uint16_t, int64_t at) { add_scaled(from + out, args.average_share(), channels, image + at); });
      } else {
        for_taps(args, oh, ow, [&](uint16_t tap, int64_t at) {
          give_to_winner(from + out, winners + out, tap, channels, image + at);
        });
      }
    }
  });
}

}  // namespace dgc
