// Batch normalisation forward, with the residual sum and the ReLU that follow it. There are two launches in training
// (sums, then apply) and one in evaluation. In training x is read twice, the residual is read once and y is written
// once: 3 or 4 elements of traffic each.
//
// Sums are taken in fp32 about the first row of each tile, so that a mean far from zero costs no digits. The tiles are
// joined in double (Chan, Golub, LeVeque 1979), always in the same order. The statistics are those of x as it is
// stored, rounded to T. A NaN or an infinity in x shows in y and in the running statistics.
//
// `saved` holds the mean, 1 / sqrt(var + eps) and the shift. With the shift, backward can tell without y which elements
// the ReLU set to zero.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/column_tiles.cuh"
#include "kernels/cuda/dispatch.h"

namespace dgc::cuda {

// The statistics that training keeps of a batch.
struct BatchStatistics {
  float eps, momentum;
  const float* shift;
  float *running_mean, *running_var;
  float* saved;
};

__device__ inline void keep_statistics(const BatchStatistics& a, const ColumnTiles& tiles, int64_t c, double average,
                                       double spread) {
  const double n = static_cast<double>(tiles.rows), variance = spread / n;
  const double unbiased = spread / (n > 2 ? n - 1 : 1.0);
  const float mean = static_cast<float>(average), keep = 1 - a.momentum;
  a.saved[c] = mean;
  a.saved[tiles.channels + c] = static_cast<float>(1 / sqrt(variance + static_cast<double>(a.eps)));
  a.saved[2 * tiles.channels + c] = a.shift[c];
  a.running_mean[c] = keep * a.running_mean[c] + a.momentum * mean;
  a.running_var[c] = keep * a.running_var[c] + a.momentum * static_cast<float>(unbiased);
}

template <typename T, int V>
struct BatchNormSums {
  static constexpr const char* kName = "batch_norm_sums";
  static constexpr int kBlock = kColumnBlock, kBlocksAtOnce = kColumnBlocksAtOnce;
  struct Args {
    ColumnTiles tiles;
    const T* x;
    BatchStatistics keep;
    TileSums sums;      // a tile's mean, and the sum of squares about that mean
    unsigned* tickets;  // one per group
  };
  using Shared = ColumnShared;

  __device__ static void run(const Args& a, Shared& shared) {
    const ColumnTiles& t = a.tiles;
    const ColumnPlace<V> p(t);
    float pivot[V] = {}, sum[V] = {}, squares[V] = {};
    if (p.inside) load(a.x + p.top * t.channels + p.channel, pivot);
    each_row<4 * kColumnRows<T>>(t, p, 0, [&]<int N>(int64_t at) {
      Pack<T, V> rows[N];
      load_rows<V>(t, a.x + at, rows);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        float x[V];
        unpack<T, V>(rows[i], x);
#pragma unroll
        for (int j = 0; j < V; ++j) {
          const float off = x[j] - pivot[j];
          sum[j] += off;
          squares[j] = fmaf(off, off, squares[j]);
        }
      }
    });
    fold_lanes(t, shared, sum, squares);
    float mean[V], spread[V];
    const float n = static_cast<float>(p.bottom - p.top);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float off = sum[j] / n, about = squares[j] - sum[j] * off;
      mean[j] = pivot[j] + off;
      spread[j] = about < 0 ? 0 : about;
    }

    // Tiles are joined about the first tile's mean.
    const auto centre = [&](int64_t channel) { return static_cast<double>(a.sums.first[channel]); };
    const auto join = [&](int64_t channel, int tile, double of_tile, double about, double& total, double& all) {
      const int64_t left = t.rows - tile * t.rows_per_tile;
      const double rows = static_cast<double>(left < t.rows_per_tile ? left : t.rows_per_tile);
      const double off = of_tile - centre(channel);
      total += rows * off;
      all += about + rows * off * off;
    };
    join_tiles(t, p, mean, spread, a.sums, a.tickets, shared, join, [&](int64_t channel, double total, double all) {
      const double off = total / static_cast<double>(t.rows), rest = all - total * off;
      keep_statistics(a.keep, t, channel, centre(channel) + off, rest < 0 ? 0 : rest);
    });
  }
};

// The mean and the variance that x is normalised with.
struct Normalisation {
  const float* mean;
  const float* inverse;  // 1 / sqrt(var + eps); null: computed from var
  const float* var;
};

template <typename T, int V>
struct BatchNormApply {
  static constexpr const char* kName = "batch_norm_apply";
  static constexpr int kBlock = kColumnBlock, kBlocksAtOnce = kColumnBlocksAtOnce;
  struct Args {
    ColumnTiles tiles;
    bool relu;
    float eps;
    const T* x;
    const T* residual;  // may be null
    const float *scale, *shift;
    Normalisation by;
    T* y;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const ColumnTiles& t = a.tiles;
    const ColumnPlace<V> p(t);
    float mean[V] = {}, gain[V] = {}, shift[V] = {};
    if (p.inside) {
      load_floats(a.by.mean + p.channel, mean);
      load_floats(a.shift + p.channel, shift);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        const int64_t c = p.channel + j;
        gain[j] = a.by.inverse != nullptr ? a.scale[c] * a.by.inverse[c] : a.scale[c] / sqrtf(a.by.var[c] + a.eps);
      }
    }
    const float floor = a.relu ? 0.f : -INFINITY;
    each_row_upwards<2 * kColumnRows<T>>(t, p, p.steps, [&]<int N>(int64_t at) {
      Pack<T, V> xs[N], skips[N];
      load_rows<V>(t, a.x + at, xs);
      if (a.residual != nullptr) load_rows<V>(t, a.residual + at, skips);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        float x[V], skip[V];
        unpack<T, V>(xs[i], x);
#pragma unroll
        for (int j = 0; j < V; ++j) x[j] = (x[j] - mean[j]) * gain[j] + shift[j];
        if (a.residual != nullptr) {
          unpack<T, V>(skips[i], skip);
#pragma unroll
          for (int j = 0; j < V; ++j) x[j] += skip[j];
        }
#pragma unroll
        for (int j = 0; j < V; ++j) x[j] = x[j] < floor ? 0 : x[j];  // so that NaN stays NaN
        store(x, a.y + at + i * t.lanes * t.channels);
      }
    });
  }
};

// The number of blocks to cut rows and channels into: as many as run at once, so that there are few tiles to join.
template <typename Queue>
int64_t column_blocks(const Queue& queue) {
  return int64_t{kColumnBlocksAtOnce} * queue.multiprocessors();
}

}  // namespace dgc::cuda
