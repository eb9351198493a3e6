// Kernels between our parameters, which are fp32 in PyTorch's layout, and cuDNN and cuBLAS.
//
// LoadFilter: [out, in, taps] fp32 -> [out, taps, in] in the activations' type; taps = kernel_h * kernel_w. Every
// weight is read and written once. Neighbouring threads read weights that lie `taps` apart; the cache keeps the weights
// between them.
// LoadTurnedFilter: [groups, out, in, taps] fp32 -> [groups, in, taps, out], the taps last to first: the filter of the
// convolution over dy that is the gradient of a convolution's data.
// AddFilter: the way back of LoadFilter, added in fp32: dw[out, in, taps] += [out, taps, in].
// AddBias: y[rows, channels] += b[channels] in place; the sum is fp32 and is rounded once.
// AddColumnSums: db[channels] += sum of dy over rows; the sum is fp32 in a tile and double over tiles, always in the
// same order.
#pragma once

#include "kernels/cuda/column_tiles.cuh"
#include "kernels/cuda/dispatch.h"

namespace dgc::cuda {

struct FilterShape {
  uint32_t out = 0, in = 0, taps = 0;  // `in` is that of one group
  __host__ __device__ uint32_t numel() const { return out * in * taps; }
};

template <typename T>
struct LoadFilter {
  static constexpr const char* kName = "load_filter";
  static constexpr int kBlock = kElementwiseBlock;
  struct Args {
    FilterShape shape;
    const float* from;
    T* to;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const uint32_t i = blockIdx.x * kBlock + threadIdx.x, per_out = a.shape.in * a.shape.taps;
    if (i >= a.shape.numel()) return;
    const uint32_t within = i % per_out, tap = within / a.shape.in, channel = within % a.shape.in;
    a.to[i] = from_float<T>(a.from[i - within + channel * a.shape.taps + tap]);
  }
};

template <typename T>
struct LoadTurnedFilter {
  static constexpr const char* kName = "load_turned_filter";
  static constexpr int kBlock = kElementwiseBlock;
  struct Args {
    FilterShape shape;
    uint32_t groups;
    const float* from;
    T* to;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
    if (i >= a.shape.numel()) return;
    const uint32_t group_out = a.shape.out / a.groups, per_in = group_out * a.shape.taps;
    const uint32_t out = i % group_out, tap = i / group_out % a.shape.taps;
    const uint32_t in = i / per_in % a.shape.in, group = i / per_in / a.shape.in;
    const uint32_t filter = (group * group_out + out) * a.shape.in + in;
    a.to[i] = from_float<T>(a.from[filter * a.shape.taps + a.shape.taps - 1 - tap]);
  }
};

template <typename T>
struct AddFilter {
  static constexpr const char* kName = "add_filter";
  static constexpr int kBlock = kElementwiseBlock;
  struct Args {
    FilterShape shape;
    const T* from;
    float* to;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const uint32_t i = blockIdx.x * kBlock + threadIdx.x, per_out = a.shape.in * a.shape.taps;
    if (i >= a.shape.numel()) return;
    const uint32_t within = i % per_out, channel = within / a.shape.taps, tap = within % a.shape.taps;
    a.to[i] += to_float(a.from[i - within + tap * a.shape.in + channel]);
  }
};

template <typename T, int V>
struct AddBias {
  static constexpr const char* kName = "add_bias";
  static constexpr int kBlock = kElementwiseBlock;
  struct Args {
    const float* b;
    int64_t channels;
    T* y;
    int64_t n;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    each_element<V>(a.n, [&]<int N>(int64_t i) {
      const int64_t channel = i % a.channels;
      float y[N], b[N];
      load(a.y + i, y);
      load_floats(a.b + channel, b);
#pragma unroll
      for (int j = 0; j < N; ++j) y[j] += b[j];
      store(y, a.y + i);
    });
  }
};

template <typename T, int V>
struct AddColumnSums {
  static constexpr const char* kName = "add_column_sums";
  static constexpr int kBlock = kColumnBlock;
  struct Args {
    ColumnTiles tiles;
    const T* x;
    float* sums;  // scratch, [tiles, channels]
    float* out;
    unsigned* tickets;  // one per group
  };
  using Shared = ColumnShared;

  __device__ static void run(const Args& a, Shared& shared) {
    const ColumnTiles& t = a.tiles;
    const ColumnPlace<V> p(t);
    float sum[V] = {}, unused[V] = {};
    each_row<4>(t, p, 0, [&]<int N>(int64_t at) {
      Pack<T, V> rows[N];
      load_rows<V>(t, a.x + at, rows);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        float x[V];
        unpack<T, V>(rows[i], x);
#pragma unroll
        for (int j = 0; j < V; ++j) sum[j] += x[j];
      }
    });
    fold_lanes(t, shared, sum, unused);
    if (p.lane == 0 && p.inside) {
#pragma unroll
      for (int j = 0; j < V; ++j) a.sums[p.tile * t.channels + p.channel + j] = sum[j];
    }

    if (!last_block(a.tickets + p.group, static_cast<unsigned>(t.tiles), shared.is_last)) return;
    const GroupPlace<V> g(t, p.group);
    double total = 0, nothing = 0;
    if (g.inside) {
      for (int tile = g.part; tile < t.tiles; tile += g.parts) {
        total += static_cast<double>(a.sums[tile * t.channels + g.channel]);
      }
    }
    fold_parts(g, shared, total, nothing);
    if (g.part == 0 && g.inside) a.out[g.channel] += static_cast<float>(total);
  }
};

template <typename Queue>
void load_filter(Queue& queue, const FilterShape& shape, ConstView w, DType type, void* to) {
  dispatch(type, [&]<typename T>() {
    queue.template run<LoadFilter<T>>(elementwise_blocks(shape.numel(), 1), {shape, w.f32(), static_cast<T*>(to)});
  });
}

template <typename Queue>
void load_turned_filter(Queue& queue, const FilterShape& shape, uint32_t groups, ConstView w, DType type, void* to) {
  dispatch(type, [&]<typename T>() {
    queue.template run<LoadTurnedFilter<T>>(elementwise_blocks(shape.numel(), 1),
                                            {shape, groups, w.f32(), static_cast<T*>(to)});
  });
}

template <typename Queue>
void add_filter(Queue& queue, const FilterShape& shape, DType type, const void* from, View dw) {
  dispatch(type, [&]<typename T>() {
    queue.template run<AddFilter<T>>(elementwise_blocks(shape.numel(), 1),
                                     {shape, static_cast<const T*>(from), dw.f32()});
  });
}

// y is [rows, channels] for any number of rows.
template <typename Queue>
void add_bias(Queue& queue, ConstView b, View y) {
  const int64_t channels = b.numel(), n = y.numel();
  dispatch(y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.template run<AddBias<T, V>>(elementwise_blocks(n, V), {b.f32(), channels, pointer<T>(y), n});
    };
    dispatch_packs<T>(channels, run, y.data);
  });
}

template <typename Queue>
void add_column_sums(Queue& queue, ConstView dy, View db) {
  const int64_t channels = db.numel(), rows = dy.numel() / channels;
  if (rows == 0) return;
  dispatch(dy.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      const ColumnTiles tiles = column_tiles(rows, channels, V, sizeof(T), int64_t{2} * queue.multiprocessors());
      const size_t bytes = static_cast<size_t>(tiles.tiles * channels) * sizeof(float);
      queue.template run<AddColumnSums<T, V>>(tiles.blocks(), {.tiles = tiles,
                                                               .x = pointer<T>(dy),
                                                               .sums = reinterpret_cast<float*>(queue.scratch(bytes)),
                                                               .out = db.f32(),
                                                               .tickets = queue.tickets()});
    };
    dispatch_packs<float>(channels, run, dy.data);
  });
}

}  // namespace dgc::cuda
