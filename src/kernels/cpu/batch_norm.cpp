// Batch normalisation with the ReLU and the residual sum that follow it in a residual network. The loops are our own,
// because the fused loops touch memory less often than oneDNN's primitive followed by a sum. `saved` holds the mean,
// then 1 / sqrt(var + eps), then the shift, which backward needs to compute the sign of y again.
//
// Rows are cut into chunks that stay in cache. Sums run in fp32 within a chunk and in double, in order, over chunks, so
// they do not depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/batch_norm_loops.h"
#include "kernels/cpu/cpu_backend.h"

namespace dgc {
namespace {

struct RowChunks {
  int64_t rows, channels, per_chunk;
  explicit RowChunks(const BatchNormArgs& a)
      : rows(a.rows), channels(a.channels), per_chunk(std::max<int64_t>(16, 4096 / a.channels)) {}
  int64_t count() const { return (rows + per_chunk - 1) / per_chunk; }
  int64_t size(int64_t i) const { return std::min(per_chunk, rows - i * per_chunk); }
  int64_t at(int64_t i) const { return i * per_chunk * channels; }
  int64_t sums() const { return count() * channels; }
};

}  // namespace

void CpuBackend::batch_norm_forward(const BatchNormArgs& args, ConstView x, ConstView residual, ConstView scale,
                                    ConstView shift, View running_mean, View running_var, View y, View saved) {
  const RowChunks chunks(args);
  const int64_t channels = args.channels, count = chunks.count();
  float* const sum = scratch_floats(2 * chunks.sums() + channels);
  float* const squares = sum + chunks.sums();
  float* const gain = squares + chunks.sums();
  float* const mean = saved.f32();
  float* const inverse = mean + channels;
  const float* const in = x.f32();
  const float* const add = args.residual ? residual.f32() : nullptr;
  const float *const by = scale.f32(), *const up = shift.f32();
  std::copy_n(up, channels, inverse + channels);
  float *const out = y.f32(), *const seen_mean = running_mean.f32(), *const seen_var = running_var.f32();

#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      bn::moments(in + chunks.at(i), chunks.size(i), channels, sum + i * channels, squares + i * channels);
    }
#pragma omp for schedule(static)
    for (int64_t c = 0; c < channels; ++c) {
      const double average = bn::over_chunks(sum, count, channels, c) / static_cast<double>(args.rows);
      double spread = 0;
      for (int64_t i = 0; i < count; ++i) {  // Chan, Golub, LeVeque 1979: joins the chunks' squares
        const double n = static_cast<double>(chunks.size(i));
        const double off = sum[i * channels + c] / n - average;
        spread += squares[i * channels + c] + n * off * off;
      }
      const double n = static_cast<double>(args.rows), variance = spread / n;
      mean[c] = static_cast<float>(average);
      inverse[c] = static_cast<float>(1 / std::sqrt(variance + args.eps));
      gain[c] = by[c] * inverse[c];
      const float keep = 1 - args.momentum;
      const double unbiased = spread / std::max(1.0, n - 1);
      seen_mean[c] = keep * seen_mean[c] + args.momentum * mean[c];
      seen_var[c] = keep * seen_var[c] + args.momentum * static_cast<float>(unbiased);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = chunks.at(i);
      bn::normalise({mean, gain, up, args.relu}, in + at, add == nullptr ? nullptr : add + at, chunks.size(i), channels,
                    out + at);
    }
  }
}

void CpuBackend::batch_norm_inference(const BatchNormArgs& args, ConstView x, ConstView residual, ConstView scale,
                                      ConstView shift, ConstView mean, ConstView var, View y) {
  const RowChunks chunks(args);
  const int64_t channels = args.channels, count = chunks.count();
  float* const gain = scratch_floats(channels);
  for (int64_t c = 0; c < channels; ++c) gain[c] = scale.f32()[c] / std::sqrt(var.f32()[c] + args.eps);
  const float *const in = x.f32(), *const add = args.residual ? residual.f32() : nullptr;
  const bn::Affine affine{mean.f32(), gain, shift.f32(), args.relu};
  float* const out = y.f32();

#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = chunks.at(i);
    bn::normalise(affine, in + at, add == nullptr ? nullptr : add + at, chunks.size(i), channels, out + at);
  }
}

void CpuBackend::batch_norm_backward(const BatchNormArgs& args, ConstView x, ConstView y, ConstView scale,
                                     ConstView saved, View dy, View dx, View dscale, View dshift) {
  const RowChunks chunks(args);
  const int64_t channels = args.channels, count = chunks.count();
  float* const sum = scratch_floats(2 * chunks.sums() + 4 * channels);
  float* const dot = sum + chunks.sums();
  float* const a = dot + chunks.sums();
  float *const b = a + channels, *const d = b + channels, *const gain = d + channels;
  const float *const mean = saved.f32(), *const inverse = mean + channels;
  bn::Relu relu{.gain = gain, .shift = inverse + channels};
  if (args.relu) relu.mask = args.residual ? bn::ReluMask::output : bn::ReluMask::input;
  for (int64_t c = 0; c < channels; ++c) gain[c] = scale.f32()[c] * inverse[c];
  const float *const in = x.f32(), *const out = relu.mask == bn::ReluMask::output ? y.f32() : nullptr;
  float *const g = dy.f32(), *const to = dx ? dx.f32() : nullptr;
  const bn::ChannelGradients gradients{scale.f32(), inverse, dscale.f32(), dshift.f32(), a, b, d};
  const double n = static_cast<double>(args.rows);

#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = chunks.at(i);
      bn::gradient_sums(relu, in + at, out == nullptr ? nullptr : out + at, mean, chunks.size(i), channels, g + at,
                        sum + i * channels, dot + i * channels);
    }
#pragma omp for schedule(static)
    for (int64_t c = 0; c < channels; ++c) {
      const double total = bn::over_chunks(sum, count, channels, c), along = bn::over_chunks(dot, count, channels, c);
      bn::finish_channel(gradients, c, {n, total, along});
    }
    if (to != nullptr) {
#pragma omp for schedule(static)
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = chunks.at(i);
        bn::input_gradient({mean, a, b, d, relu}, in + at, g + at, chunks.size(i), channels, to + at);
      }
    }
  }
}

}  // namespace dgc
