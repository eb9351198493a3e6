// Batch normalisation backward, in two launches. With h = (x - mean) * inverse over n rows
//   dshift += sum dy;  dscale += sum dy * h;  dx = scale * inverse * (dy - mean(dy) - h * mean(dy * h))
// (Ioffe, Szegedy 2015), where dy is first set to 0 wherever the ReLU set y to 0. After a residual sum only y tells
// where that was: the first launch reads y and masks dy in place, since dy is the residual's gradient too (7 elements
// of traffic each). Without a residual sum, both launches compute the sign of y again from x, in the arithmetic and
// rounding of forward, and the mask is not written to dy: 5 elements. Sums are taken in fp32 over a tile and in double
// over tiles, always in the same order.
#include "kernels/cuda/batch_norm.cuh"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

// What tells where the ReLU set y to 0, so that dy is masked there: nothing (no ReLU), y, or x.
enum class ReluMask { none, output, input };

// Repeats what forward did to x - mean, with the same operations and the same rounding to T. So it tells bit for bit
// where y was positive.
template <typename T, int V>
struct Forward {
  float gain[V], shift[V];

  __device__ Forward(const ColumnTiles& t, const ColumnPlace<V>& p, const float* scale, const float* saved) {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      gain[j] = p.inside ? scale[p.channel + j] * saved[t.channels + p.channel + j] : 0;
      shift[j] = p.inside ? saved[2 * t.channels + p.channel + j] : 0;
    }
  }
  __device__ bool positive(float centred, int j) const {
    return to_float(from_float<T>(centred * gain[j] + shift[j])) > 0;
  }
};

template <typename T, int V>
struct BatchNormGradientSums {
  static constexpr const char* kName = "batch_norm_gradient_sums";
  static constexpr int kBlock = kColumnBlock, kBlocksAtOnce = kColumnBlocksAtOnce;
  struct Args {
    ColumnTiles tiles;
    ReluMask mask;
    const T* x;
    const T* y;  // read for ReluMask::output only
    const float* scale;
    const float* saved;
    T* dy;  // written for ReluMask::output only
    float *dscale, *dshift;
    TileSums sums;        // sums of dy and of dy * (x - mean)
    float* coefficients;  // [2, channels]: dx = gain * dy + [0] * (x - mean) + [1]
    unsigned* tickets;
  };
  using Shared = ColumnShared;

  __device__ static void finish(const Args& a, int64_t c, double total, double along) {
    const int64_t channels = a.tiles.channels;
    const double n = static_cast<double>(a.tiles.rows), inverse = static_cast<double>(a.saved[channels + c]);
    const double gain = static_cast<double>(a.scale[c]) * inverse;
    a.dscale[c] += static_cast<float>(along * inverse);
    a.dshift[c] += static_cast<float>(total);
    a.coefficients[c] = static_cast<float>(-gain * inverse * inverse * along / n);
    a.coefficients[channels + c] = static_cast<float>(-gain * total / n);
  }

  __device__ static void run(const Args& a, Shared& shared) {
    const ColumnTiles& t = a.tiles;
    const ColumnPlace<V> p(t);
    float mean[V] = {}, sum[V] = {}, dot[V] = {};
    if (p.inside) load_floats(a.saved + p.channel, mean);
    const Forward<T, V> forward(t, p, a.scale, a.saved);
    each_row<kColumnRows<T>>(t, p, 0, [&]<int N>(int64_t at) {
      Pack<T, V> xs[N], dys[N], ys[N];
      load_rows<V>(t, a.x + at, xs);
      load_rows<V>(t, a.dy + at, dys);
      if (a.mask == ReluMask::output) load_rows<V>(t, a.y + at, ys);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        float x[V], dy[V];
        unpack<T, V>(xs[i], x);
        unpack<T, V>(dys[i], dy);
#pragma unroll
        for (int j = 0; j < V; ++j) x[j] -= mean[j];
        if (a.mask == ReluMask::output) {
          float y[V];
          unpack<T, V>(ys[i], y);
#pragma unroll
          for (int j = 0; j < V; ++j) dy[j] = y[j] > 0 ? dy[j] : 0;
          store(dy, a.dy + at + i * t.lanes * t.channels);
        } else if (a.mask == ReluMask::input) {
#pragma unroll
          for (int j = 0; j < V; ++j) dy[j] = forward.positive(x[j], j) ? dy[j] : 0;
        }
#pragma unroll
        for (int j = 0; j < V; ++j) {
          sum[j] += dy[j];
          dot[j] = fmaf(dy[j], x[j], dot[j]);
        }
      }
    });
    fold_lanes(t, shared, sum, dot);
    join_tiles(t, p, sum, dot, a.sums, a.tickets, shared, AddTile{},
               [&](int64_t channel, double total, double along) { finish(a, channel, total, along); });
  }
};

template <typename T, int V>
struct BatchNormInputGradient {
  static constexpr const char* kName = "batch_norm_input_gradient";
  static constexpr int kBlock = kColumnBlock, kBlocksAtOnce = kColumnBlocksAtOnce;
  struct Args {
    ColumnTiles tiles;
    ReluMask mask;  // ReluMask::output: dy is masked already
    const T* x;
    const T* dy;
    const float* scale;
    const float* saved;
    const float* coefficients;
    T* dx;  // may be dy
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const ColumnTiles& t = a.tiles;
    const ColumnPlace<V> p(t);
    float mean[V] = {}, by_x[V] = {}, constant[V] = {};
    if (p.inside) {
      load_floats(a.saved + p.channel, mean);
      load_floats(a.coefficients + p.channel, by_x);
      load_floats(a.coefficients + t.channels + p.channel, constant);
    }
    const Forward<T, V> forward(t, p, a.scale, a.saved);
    each_row_upwards<kColumnRows<T>>(t, p, p.steps, [&]<int N>(int64_t at) {
      Pack<T, V> xs[N], dys[N];
      load_rows<V>(t, a.x + at, xs);
      load_rows<V>(t, a.dy + at, dys);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        float x[V], dy[V];
        unpack<T, V>(xs[i], x);
        unpack<T, V>(dys[i], dy);
#pragma unroll
        for (int j = 0; j < V; ++j) x[j] -= mean[j];
        if (a.mask == ReluMask::input) {
#pragma unroll
          for (int j = 0; j < V; ++j) dy[j] = forward.positive(x[j], j) ? dy[j] : 0;
        }
#pragma unroll
        for (int j = 0; j < V; ++j) dy[j] = (forward.gain[j] * dy[j] + by_x[j] * x[j]) + constant[j];
        store(dy, a.dx + at + i * t.lanes * t.channels);
      }
    });
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::batch_norm_backward(const BatchNormArgs& args, ConstView x, ConstView y, ConstView scale,
                                        ConstView saved, View dy, View dx, View dscale, View dshift) {
  Queue queue(*this);
  const ReluMask mask = !args.relu ? ReluMask::none : args.residual ? ReluMask::output : ReluMask::input;
  const void* const output = mask == ReluMask::output ? y.data : nullptr;
  dispatch(dy.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      const ColumnTiles tiles = column_tiles(args.rows, args.channels, V, sizeof(T), column_blocks(queue));
      const size_t sums = tile_sums_floats(tiles), room = sums + 2 * static_cast<size_t>(args.channels);
      auto* const scratch = reinterpret_cast<float*>(queue.scratch(room * sizeof(float)));
      queue.run<BatchNormGradientSums<T, V>>(tiles.blocks(), {.tiles = tiles,
                                                              .mask = mask,
                                                              .x = pointer<T>(x),
                                                              .y = static_cast<const T*>(output),
                                                              .scale = scale.f32(),
                                                              .saved = pointer<float>(saved),
                                                              .dy = pointer<T>(dy),
                                                              .dscale = dscale.f32(),
                                                              .dshift = dshift.f32(),
                                                              .sums = tile_sums(tiles, scratch),
                                                              .coefficients = scratch + sums,
                                                              .tickets = queue.tickets(tiles.groups)});
      if (!dx) return;
      queue.run<BatchNormInputGradient<T, V>>(tiles.blocks(), {.tiles = tiles,
                                                               .mask = mask,
                                                               .x = pointer<T>(x),
                                                               .dy = pointer<T>(dy),
                                                               .scale = scale.f32(),
                                                               .saved = pointer<float>(saved),
                                                               .coefficients = scratch + sums,
                                                               .dx = pointer<T>(dx)});
    };
    dispatch_packs<float>(args.channels, run, x.data, output, dy.data, dx.data);
  });
}

}  // namespace dgc
