// Frames are cut into chunks that stay in cache. Sums run in fp32 within a chunk and in double, in order, over chunks,
// so they do not depend on the number of threads. There are two passes, one for the mean and one for the squares about
// it, because a chunk's valid rows do not lie together. `saved` holds the mean, then 1 / sqrt(var + eps).
#include <cmath>

#include "kernels/cpu/batch_norm_loops.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/sequence.h"
#include "tensor/simd.h"

namespace dgc {
namespace {

DGC_MULTIVERSION void add_rows(const float* x, int64_t rows, int64_t channels, float* sum) {
  for (int64_t r = 0; r < rows; ++r, x += channels) {
    for (int64_t c = 0; c < channels; ++c) sum[c] += x[c];
  }
}

DGC_MULTIVERSION void add_squares(const float* x, const float* mean, int64_t rows, int64_t channels, float* squares) {
  for (int64_t r = 0; r < rows; ++r, x += channels) {
    for (int64_t c = 0; c < channels; ++c) squares[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
  }
}

struct GradientSums {
  const float *x, *mean, *dy;
  float *sum, *dot;  // += dy, += dy * (x - mean)
};

DGC_MULTIVERSION void add_gradients(const GradientSums& g, int64_t rows, int64_t channels) {
  const float *x = g.x, *dy = g.dy;
  const float* const mean = g.mean;
  float *const sum = g.sum, *const dot = g.dot;
  for (int64_t r = 0; r < rows; ++r, x += channels, dy += channels) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      sum[c] += dy[c];
      dot[c] += dy[c] * (x[c] - mean[c]);
    }
  }
}

struct FrameChunks {
  const SequenceNormArgs& args;
  const int32_t* lengths;
  int64_t per_chunk = std::max<int64_t>(1, 16384 / args.sequences.width);

  int64_t count() const { return (args.sequences.frames() + per_chunk - 1) / per_chunk; }

  // Calls valid(offset, rows) and padding(offset, elements) for chunk i.
  template <typename Valid, typename Padding>
  void walk(int64_t i, const Valid& valid, const Padding& padding) const {
    const SequenceArgs& a = args.sequences;
    const int64_t end = std::min(a.frames(), (i + 1) * per_chunk);
    for_stretches(
        a, lengths, i * per_chunk, end,
        [&](int64_t frame, int64_t n) { valid(frame * a.width, n * args.rows_of_step()); },
        [&](int64_t frame, int64_t n) { padding(frame * a.width, n * a.width); });
  }
  template <typename Valid>
  void walk(int64_t i, const Valid& valid) const {
    walk(i, valid, [](int64_t, int64_t) {});
  }
  double rows() const {
    int64_t steps = 0;
    for (int64_t s = 0; s < args.sequences.streams; ++s) steps += valid_steps(args.sequences, lengths[s]);
    return static_cast<double>(steps * args.rows_of_step());
  }
};

}  // namespace

void CpuBackend::sequence_norm_forward(const SequenceNormArgs& args, ConstView lengths, ConstView x, ConstView scale,
                                       ConstView shift, View running_mean, View running_var, View y, View saved) {
  const FrameChunks chunks{args, lengths.i32()};
  const int64_t channels = args.channels, count = chunks.count();
  float* const sums = scratch_floats((count + 1) * channels);
  float* const gain = sums + count * channels;
  float *const mean = saved.f32(), *const inverse = mean + channels;
  const float *const in = x.f32(), *const by = scale.f32(), *const up = shift.f32();
  float *const out = y.f32(), *const seen_mean = running_mean.f32(), *const seen_var = running_var.f32();
  const double n = chunks.rows(), divisor = std::max(1.0, n);
  const float keep = n > 0 ? 1 - args.momentum : 1, weight = n > 0 ? args.momentum : 0;

#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      float* const sum = sums + i * channels;
      std::fill_n(sum, channels, 0.f);
      chunks.walk(i, [&](int64_t at, int64_t rows) { add_rows(in + at, rows, channels, sum); });
    }
#pragma omp for schedule(static)
    for (int64_t c = 0; c < channels; ++c) {
      mean[c] = static_cast<float>(bn::over_chunks(sums, count, channels, c) / divisor);
      seen_mean[c] = keep * seen_mean[c] + weight * mean[c];
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      float* const squares = sums + i * channels;
      std::fill_n(squares, channels, 0.f);
      chunks.walk(i, [&](int64_t at, int64_t rows) { add_squares(in + at, mean, rows, channels, squares); });
    }
#pragma omp for schedule(static)
    for (int64_t c = 0; c < channels; ++c) {
      const double spread = bn::over_chunks(sums, count, channels, c);
      inverse[c] = static_cast<float>(1 / std::sqrt(spread / divisor + args.eps));
      gain[c] = by[c] * inverse[c];
      seen_var[c] = keep * seen_var[c] + weight * static_cast<float>(spread / std::max(1.0, n - 1));
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      chunks.walk(
          i,
          [&](int64_t at, int64_t rows) {
            bn::normalise({mean, gain, up, false}, in + at, nullptr, rows, channels, out + at);
          },
          [&](int64_t at, int64_t elements) { std::fill_n(out + at, elements, 0.f); });
    }
  }
}

void CpuBackend::sequence_norm_backward(const SequenceNormArgs& args, ConstView lengths, ConstView x, ConstView scale,
                                        ConstView saved, ConstView dy, View dx, View dscale, View dshift) {
  const FrameChunks chunks{args, lengths.i32()};
  const int64_t channels = args.channels, count = chunks.count();
  float* const sum = scratch_floats((2 * count + 3) * channels);
  float* const dot = sum + count * channels;
  float* const a = dot + count * channels;
  float *const b = a + channels, *const d = b + channels;
  const float *const mean = saved.f32(), *const inverse = mean + channels;
  const float *const in = x.f32(), *const g = dy.f32();
  float* const to = dx ? dx.f32() : nullptr;
  const bn::ChannelGradients gradients{scale.f32(), inverse, dscale.f32(), dshift.f32(), a, b, d};
  const double n = std::max(1.0, chunks.rows());

#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
      float *const own_sum = sum + i * channels, *const own_dot = dot + i * channels;
      std::fill_n(own_sum, channels, 0.f);
      std::fill_n(own_dot, channels, 0.f);
      chunks.walk(i, [&](int64_t at, int64_t rows) {
        add_gradients({in + at, mean, g + at, own_sum, own_dot}, rows, channels);
      });
    }
#pragma omp for schedule(static)
    for (int64_t c = 0; c < channels; ++c) {
      const double total = bn::over_chunks(sum, count, channels, c), along = bn::over_chunks(dot, count, channels, c);
      bn::finish_channel(gradients, c, {n, total, along});
    }
    if (to != nullptr) {
#pragma omp for schedule(static)
      for (int64_t i = 0; i < count; ++i) {
        chunks.walk(
            i,
            [&](int64_t at, int64_t rows) {
              bn::input_gradient({mean, a, b, d}, in + at, g + at, rows, channels, to + at);
            },
            [&](int64_t at, int64_t elements) { std::fill_n(to + at, elements, 0.f); });
      }
    }
  }
}

}  // namespace dgc
