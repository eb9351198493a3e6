// Batch normalisation over the valid steps of padded sequences. Forward takes three launches (mean, squares about the
// mean, apply) and backward two (sums, apply). x is read three times in forward and twice in backward, dy twice; y and
// dx are written once. Sums are taken in fp32 by a thread and over a tile, and in double over tiles, always in the same
// order. The device itself counts the valid rows. `saved` holds the mean, then 1 / sqrt(var + eps).
#include "kernels/cuda/column_tiles.cuh"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/sequence_steps.cuh"

namespace dgc::cuda {

// The rows of [frames, rows_of_step, channels] data.
struct NormRows {
  SequenceArgs sequences;
  int64_t rows_of_step;
  const int32_t* lengths;

  __device__ bool valid(int64_t row) const { return is_valid(sequences, lengths, row / rows_of_step); }
  __device__ double count() const {
    int64_t steps = 0;
    for (int64_t s = 0; s < sequences.streams; ++s) steps += valid_steps(sequences, lengths[s]);
    return static_cast<double>(steps * rows_of_step);
  }
};

// Each of the three structs SumOfRows, SquaresOfRows and GradientsOfRows says what is summed, at most two numbers per
// channel, and what is made of the sums over n rows.
template <typename T>
struct SumOfRows {
  static constexpr const char* kName = "sequence_norm_mean";
  const T* x;
  float momentum;
  float *mean, *running_mean;

  __device__ void add(int64_t at, int64_t, float& sum, float&) const { sum += to_float(x[at]); }
  __device__ void finish(int64_t c, double sum, double, double n) const {
    mean[c] = static_cast<float>(n > 0 ? sum / n : 0.0);
    if (n > 0) running_mean[c] = (1 - momentum) * running_mean[c] + momentum * mean[c];
  }
};

template <typename T>
struct SquaresOfRows {
  static constexpr const char* kName = "sequence_norm_squares";
  const T* x;
  const float* mean;
  float eps, momentum;
  float *inverse, *running_var;

  __device__ void add(int64_t at, int64_t channel, float& sum, float&) const {
    const float off = to_float(x[at]) - mean[channel];
    sum += off * off;
  }
  __device__ void finish(int64_t c, double sum, double, double n) const {
    inverse[c] = static_cast<float>(1 / sqrt((n > 0 ? sum / n : 0.0) + static_cast<double>(eps)));
    const float unbiased = static_cast<float>(sum / (n > 2 ? n - 1 : 1.0));
    if (n > 0) running_var[c] = (1 - momentum) * running_var[c] + momentum * unbiased;
  }
};

// dx = a dy + b (x - mean) + d, with the factors of each channel.
struct NormFactors {
  float *a, *b, *d;
};

template <typename T>
struct GradientsOfRows {
  static constexpr const char* kName = "sequence_norm_gradient_sums";
  const T* x;
  const T* dy;
  const float *saved, *scale;
  int64_t channels;
  float *dscale, *dshift;
  NormFactors factors;

  __device__ void add(int64_t at, int64_t channel, float& sum, float& dot) const {
    const float g = to_float(dy[at]);
    sum += g;
    dot += g * (to_float(x[at]) - saved[channel]);
  }
  __device__ void finish(int64_t c, double sum, double dot, double rows) const {
    const double n = rows > 0 ? rows : 1, inverse = static_cast<double>(saved[channels + c]);
    const double gain = static_cast<double>(scale[c]) * inverse;
    dscale[c] += static_cast<float>(dot * inverse);
    dshift[c] += static_cast<float>(sum);
    factors.a[c] = static_cast<float>(gain);
    factors.b[c] = static_cast<float>(-gain * inverse * inverse * dot / n);
    factors.d[c] = static_cast<float>(-gain * sum / n);
  }
};

template <typename What>
struct SequenceSums {
  static constexpr const char* kName = What::kName;
  static constexpr int kBlock = kColumnBlock, kBlocksAtOnce = kColumnBlocksAtOnce;
  struct Args {
    ColumnTiles tiles;
    NormRows rows;
    What what;
    TileSums sums;
    unsigned* tickets;  // one per group
  };
  using Shared = ColumnShared;

  __device__ static void run(const Args& a, Shared& shared) {
    const ColumnTiles& t = a.tiles;
    const ColumnPlace<1> p(t);
    float first[1] = {}, second[1] = {};
    for (int i = 0; i < p.steps; ++i) {
      const int64_t row = p.top + p.lane + int64_t{i} * t.lanes;
      if (a.rows.valid(row)) a.what.add(row * t.channels + p.channel, p.channel, first[0], second[0]);
    }
    fold_lanes(t, shared, first, second);
    join_tiles(
        t, p, first, second, a.sums, a.tickets, shared, AddTile{},
        [&](int64_t channel, double total, double other) { a.what.finish(channel, total, other, a.rows.count()); });
  }
};

template <typename T>
struct SequenceNormApply : ElementwiseKernel {
  static constexpr const char* kName = "sequence_norm_apply";
  struct Args {
    NormRows rows;
    int64_t n, channels;
    const T* x;
    const float *saved, *scale, *shift;
    T* y;
  };

  __device__ static void run(const Args& a, Shared&) {
    const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x, c = i % a.channels;
    if (i >= a.n) return;
    float y = 0;
    if (a.rows.valid(i / a.channels)) {
      y = (to_float(a.x[i]) - a.saved[c]) * (a.scale[c] * a.saved[a.channels + c]) + a.shift[c];
    }
    a.y[i] = from_float<T>(y);
  }
};

template <typename T>
struct SequenceNormGradient : ElementwiseKernel {
  static constexpr const char* kName = "sequence_norm_gradient";
  struct Args {
    NormRows rows;
    int64_t n, channels;
    const T* x;
    const T* dy;
    const float* mean;
    NormFactors factors;
    T* dx;
  };

  __device__ static void run(const Args& a, Shared&) {
    const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x, c = i % a.channels;
    if (i >= a.n) return;
    float dx = 0;
    if (a.rows.valid(i / a.channels)) {
      dx = (a.factors.a[c] * to_float(a.dy[i]) + a.factors.b[c] * (to_float(a.x[i]) - a.mean[c])) + a.factors.d[c];
    }
    a.dx[i] = from_float<T>(dx);
  }
};

inline NormRows norm_rows(const SequenceNormArgs& args, ConstView lengths) {
  return {args.sequences, args.sequences.width / args.channels, lengths.i32()};
}

inline int64_t norm_elements(const SequenceNormArgs& args) {
  return args.sequences.steps * args.sequences.streams * args.sequences.width;
}

// About two blocks per multiprocessor, so that there are few tiles to join.
template <typename T>
ColumnTiles norm_tiles(const Queue& queue, const SequenceNormArgs& args) {
  return column_tiles(norm_elements(args) / args.channels, args.channels, 1, sizeof(T),
                      int64_t{kColumnBlocksAtOnce} * queue.multiprocessors());
}

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::sequence_norm_forward(const SequenceNormArgs& args, ConstView lengths, ConstView x, ConstView scale,
                                          ConstView shift, View running_mean, View running_var, View y, View saved) {
  Queue queue(*this);
  const NormRows rows = norm_rows(args, lengths);
  float *const mean = pointer<float>(saved), *const inverse = mean + args.channels;
  dispatch(y.dtype, [&]<typename T>() {
    const ColumnTiles tiles = norm_tiles<T>(queue, args);
    auto* const scratch = reinterpret_cast<float*>(queue.scratch(tile_sums_floats(tiles) * sizeof(float)));
    const TileSums sums = tile_sums(tiles, scratch);
    const SumOfRows<T> sum{pointer<T>(x), args.momentum, mean, running_mean.f32()};
    queue.run<SequenceSums<SumOfRows<T>>>(tiles.blocks(), {tiles, rows, sum, sums, queue.tickets(tiles.groups)});
    const SquaresOfRows<T> squares{pointer<T>(x), mean, args.eps, args.momentum, inverse, running_var.f32()};
    queue.run<SequenceSums<SquaresOfRows<T>>>(tiles.blocks(),
                                              {tiles, rows, squares, sums, queue.tickets(tiles.groups)});
    const int64_t n = norm_elements(args);
    queue.run<SequenceNormApply<T>>(elementwise_blocks(n, 1), {rows, n, args.channels, pointer<T>(x), mean, scale.f32(),
                                                               shift.f32(), pointer<T>(y)});
  });
}

void KernelBackend::sequence_norm_backward(const SequenceNormArgs& args, ConstView lengths, ConstView x,
                                           ConstView scale, ConstView saved, ConstView dy, View dx, View dscale,
                                           View dshift) {
  Queue queue(*this);
  const NormRows rows = norm_rows(args, lengths);
  const auto* const kept = pointer<float>(saved);
  dispatch(dy.dtype, [&]<typename T>() {
    const ColumnTiles tiles = norm_tiles<T>(queue, args);
    const size_t of_tiles = tile_sums_floats(tiles), room = of_tiles + 3 * static_cast<size_t>(args.channels);
    auto* const scratch = reinterpret_cast<float*>(queue.scratch(room * sizeof(float)));
    const TileSums sums = tile_sums(tiles, scratch);
    float* const a = scratch + of_tiles;
    const NormFactors factors{a, a + args.channels, a + 2 * args.channels};
    const GradientsOfRows<T> gradients{pointer<T>(x), pointer<T>(dy), kept,         scale.f32(),
                                       args.channels, dscale.f32(),   dshift.f32(), factors};
    queue.run<SequenceSums<GradientsOfRows<T>>>(tiles.blocks(),
                                                {tiles, rows, gradients, sums, queue.tickets(tiles.groups)});
    if (!dx) return;
    const int64_t n = norm_elements(args);
    queue.run<SequenceNormGradient<T>>(elementwise_blocks(n, 1), {rows, n, args.channels, pointer<T>(x), pointer<T>(dy),
                                                                  kept, factors, pointer<T>(dx)});
  });
}

}  // namespace dgc
