// Kernels between our parameters, which are fp32 in PyTorch's layout, and cuDNN and cuBLAS.
//
// LoadFilters: [out, in, taps] fp32 -> [out, taps, in] in the activations' type, for several filters; taps = kernel_h *
// kernel_w. Every weight is read and written once, along rows on both sides: tiles pass through shared memory.
// AddFilters: the way back, added in fp32: dw[out, in, taps] += [out, taps, in].
// LoadTurnedFilter: [groups, out, in, taps] fp32 -> [groups, in, taps, out], the taps last to first: the filter of the
// convolution over dy that is the gradient of a convolution's data.
// AddBias: y[rows, channels] += b[channels] in place; the sum is fp32 and is rounded once.
// AddColumnSums: db[channels] += sum of dy over rows; the sum is fp32 in a tile and double over tiles, always in the
// same order.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/column_tiles.cuh"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/last_start.cuh"

namespace dgc::cuda {

struct FilterShape {
  uint32_t out = 0, in = 0, taps = 0;  // `in` is that of one group
  __host__ __device__ uint32_t numel() const { return out * in * taps; }
};

// A filter's taps for one channel are a unit. A block moves as many units as have kFilterTile numbers, but at least
// one.
constexpr uint32_t kFilterTile = 2048;

struct FilterMove {
  FilterShape shape;
  uint32_t first_block = 0;  // of the launch, for this filter; load_filters() and add_filters() fill it in
  const void* from = nullptr;
  void* to = nullptr;

  __host__ __device__ uint32_t tile_units() const { return shape.taps < kFilterTile ? kFilterTile / shape.taps : 1; }
  __host__ __device__ uint32_t blocks() const { return (shape.out * shape.in + tile_units() - 1) / tile_units(); }
  // Where tap `tap` of a unit lies in [out, taps, in].
  __device__ uint32_t place(uint32_t unit, uint32_t tap) const {
    return (unit / shape.in * shape.taps + tap) * shape.in + unit % shape.in;
  }
};

// The filters of one launch.
struct FilterMoves {
  int count = 0;
  FilterMove moves[kMostFilters];

  __device__ const FilterMove& of_block(uint32_t block) const {
    return moves[last_start(count, block, [&](int i) { return int64_t{moves[i].first_block}; })];
  }
};

// The units of a block.
struct FilterTile {
  uint32_t first, units, numel;
  __device__ FilterTile(const FilterMove& move, uint32_t block) {
    const uint32_t all = move.shape.out * move.shape.in, most = move.tile_units();
    first = (block - move.first_block) * most;
    units = all - first < most ? all - first : most;
    numel = units * move.shape.taps;
  }
};

struct FilterKernel {
  static constexpr int kBlock = kElementwiseBlock;
  using Args = FilterMoves;
  struct Shared {
    float tile[kFilterTile];
  };
};

template <typename T>
struct LoadFilters : FilterKernel {
  static constexpr const char* kName = "load_filters";

  __device__ static void run(const Args& a, Shared& shared) {
    const FilterMove& move = a.of_block(blockIdx.x);
    const FilterTile tile(move, blockIdx.x);
    const uint32_t taps = move.shape.taps;
    const float* const from = static_cast<const float*>(move.from) + tile.first * taps;
    T* const to = static_cast<T*>(move.to);
    if (tile.numel > kFilterTile) {  // a single unit
      for (uint32_t i = threadIdx.x; i < taps; i += kBlock) to[move.place(tile.first, i)] = from_float<T>(from[i]);
      return;
    }
    for (uint32_t i = threadIdx.x; i < tile.numel; i += kBlock) shared.tile[i] = from[i];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < tile.numel; i += kBlock) {
      const uint32_t unit = i % tile.units, tap = i / tile.units;
      to[move.place(tile.first + unit, tap)] = from_float<T>(shared.tile[unit * taps + tap]);
    }
  }
};

template <typename T>
struct LoadTurnedFilter : ElementwiseKernel {
  static constexpr const char* kName = "load_turned_filter";
  struct Args {
    FilterShape shape;
    uint32_t groups;
    const float* from;
    T* to;
  };

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
struct AddFilters : FilterKernel {
  static constexpr const char* kName = "add_filters";

  __device__ static void run(const Args& a, Shared& shared) {
    const FilterMove& move = a.of_block(blockIdx.x);
    const FilterTile tile(move, blockIdx.x);
    const uint32_t taps = move.shape.taps;
    const T* const from = static_cast<const T*>(move.from);
    float* const to = static_cast<float*>(move.to) + tile.first * taps;
    if (tile.numel > kFilterTile) {  // a single unit
      for (uint32_t i = threadIdx.x; i < taps; i += kBlock) to[i] += to_float(from[move.place(tile.first, i)]);
      return;
    }
    for (uint32_t i = threadIdx.x; i < tile.numel; i += kBlock) {
      const uint32_t unit = i % tile.units, tap = i / tile.units;
      shared.tile[unit * taps + tap] = to_float(from[move.place(tile.first + unit, tap)]);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < tile.numel; i += kBlock) to[i] += shared.tile[i];
  }
};

template <typename T, int V>
struct AddBias : ElementwiseKernel {
  static constexpr const char* kName = "add_bias";
  struct Args {
    const float* b;
    int64_t channels;
    T* y;
    int64_t n;
  };

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
    TileSums sums;  // of which only the first is used
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
    join_tiles(t, p, sum, unused, a.sums, a.tickets, shared, AddTile{},
               [&](int64_t channel, double total, double) { a.out[channel] += static_cast<float>(total); });
  }
};

// Runs the kernel over all filters, kMostFilters in each launch.
template <typename Kernel, typename Queue>
void move_filters(Queue& queue, std::span<const FilterMove> all) {
  for (size_t first = 0; first < all.size(); first += kMostFilters) {
    FilterMoves now;
    uint32_t blocks = 0;
    for (const FilterMove& move : all.subspan(first, std::min(kMostFilters, all.size() - first))) {
      FilterMove& made = now.moves[now.count++] = move;
      made.first_block = blocks;
      blocks += made.blocks();
    }
    queue.template run<Kernel>(blocks, now);
  }
}

// Each filter goes from fp32 in our order to `type` in cuDNN's.
template <typename Queue>
void load_filters(Queue& queue, DType type, std::span<const FilterMove> all) {
  dispatch(type, [&]<typename T>() { move_filters<LoadFilters<T>>(queue, all); });
}

// Each gradient comes from `type` in cuDNN's order, and is added to fp32 in ours.
template <typename Queue>
void add_filters(Queue& queue, DType type, std::span<const FilterMove> all) {
  dispatch(type, [&]<typename T>() { move_filters<AddFilters<T>>(queue, all); });
}

template <typename Queue>
void load_turned_filter(Queue& queue, const FilterShape& shape, uint32_t groups, ConstView w, DType type, void* to) {
  dispatch(type, [&]<typename T>() {
    queue.template run<LoadTurnedFilter<T>>(elementwise_blocks(shape.numel(), 1),
                                            {shape, groups, w.f32(), static_cast<T*>(to)});
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
      auto* const scratch = reinterpret_cast<float*>(queue.scratch(tile_sums_floats(tiles) * sizeof(float)));
      queue.template run<AddColumnSums<T, V>>(tiles.blocks(), {.tiles = tiles,
                                                               .x = pointer<T>(dy),
                                                               .sums = tile_sums(tiles, scratch),
                                                               .out = db.f32(),
                                                               .tickets = queue.tickets(tiles.groups)});
    };
    dispatch_packs<float>(channels, run, dy.data);
  });
}

}  // namespace dgc::cuda
