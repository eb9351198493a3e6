// How blocks share out the rows and columns of [rows, channels] data when something is summed over rows, per channel.
//
// A thread keeps V neighbouring channels in registers and walks down every lanes-th row of its tile, so that a warp
// reads whole 128-byte lines and a parameter is loaded once. A block is `width` threads wide and `lanes` deep. The
// lanes of a tile are folded in halves, and the tiles are added in a fixed order, so the sums do not depend on timing.
#pragma once

#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/pack.cuh"

namespace dgc::cuda {

inline constexpr int kColumnBlock = 512;
inline constexpr int kColumnBlocksAtOnce = 2;  // blocks on a multiprocessor: 64 registers per thread
// The most channels per thread, whatever their type: more channels would leave too few registers for enough loads in
// flight.
inline constexpr int kColumnPack = 4;
// The number of rows of kColumnPack channels that make 16 bytes. Kernels load a multiple of this number at once, as far
// as the registers allow: a thread has 32 to 64 bytes in flight.
template <typename T>
inline constexpr int kColumnRows = kPack<T> / kColumnPack;

struct ColumnTiles {
  int64_t rows = 0, channels = 0, rows_per_tile = 0;
  int width = 1, lanes = 1;  // width * lanes = kColumnBlock, both powers of two
  int groups = 1, tiles = 1;
  int64_t blocks() const { return int64_t{groups} * tiles; }
};

// Returns tiles for about `blocks` blocks, or for fewer where a thread would get less than 4 rows. A thread takes v
// channels of `size` bytes.
inline ColumnTiles column_tiles(int64_t rows, int64_t channels, int v, size_t size, int64_t blocks) {
  ColumnTiles t{.rows = rows, .channels = channels};
  const int64_t vectors = channels / v, line = 128 / (static_cast<int64_t>(size) * v);
  while (t.width < vectors && t.width < line && t.width < 32) t.width *= 2;
  t.lanes = kColumnBlock / t.width;
  t.groups = static_cast<int>((vectors + t.width - 1) / t.width);
  const int64_t wanted = blocks / t.groups < 1 ? 1 : blocks / t.groups;
  const int64_t per_thread = (rows + wanted * t.lanes - 1) / (wanted * t.lanes);
  t.rows_per_tile = t.lanes * (per_thread < 4 ? 4 : per_thread);
  t.tiles = static_cast<int>((rows + t.rows_per_tile - 1) / t.rows_per_tile);
  return t;
}

// Where the calling thread works.
template <int V>
struct ColumnPlace {
  int tile, group, lane;
  int64_t channel;      // the thread's first channel
  bool inside;          // the channel exists
  int64_t top, bottom;  // rows of the tile
  int steps;            // rows of this thread: top + lane, top + lane + lanes, ...

  __device__ explicit ColumnPlace(const ColumnTiles& t)
      : tile(static_cast<int>(blockIdx.x) / t.groups),
        group(static_cast<int>(blockIdx.x) % t.groups),
        lane(static_cast<int>(threadIdx.x) / t.width),
        channel((int64_t{group} * t.width + static_cast<int>(threadIdx.x) % t.width) * V),
        inside(channel < t.channels),
        top(tile * t.rows_per_tile),
        bottom(top + t.rows_per_tile < t.rows ? top + t.rows_per_tile : t.rows),
        steps(inside && top + lane < bottom ? static_cast<int>((bottom - top - lane + t.lanes - 1) / t.lanes) : 0) {}
};

// Calls body<N>(offset) for this thread's rows from number i on: N rows at a time while so many are left, then N / 2,
// and so on. The rows of a call lie lanes * channels elements apart from `offset` on.
template <int N, int V, typename Body>
__device__ inline void each_row(const ColumnTiles& t, const ColumnPlace<V>& p, int i, const Body& body) {
  const int64_t first = (p.top + p.lane) * t.channels + p.channel;
  for (; i + N <= p.steps; i += N) body.template operator()<N>(first + int64_t{i} * t.lanes * t.channels);
  if constexpr (N > 1) each_row<N / 2>(t, p, i, body);
}

// Calls body<N>(offset) likewise for this thread's first `left` rows, but from the last of these rows upwards: the rows
// that a pass from the top has read last are still in the cache.
template <int N, int V, typename Body>
__device__ inline void each_row_upwards(const ColumnTiles& t, const ColumnPlace<V>& p, int left, const Body& body) {
  const int64_t first = (p.top + p.lane) * t.channels + p.channel;
  for (; left >= N; left -= N) body.template operator()<N>(first + int64_t{left - N} * t.lanes * t.channels);
  if constexpr (N > 1) each_row_upwards<N / 2>(t, p, left, body);
}

// Loads N rows of each_row from `from` on. All loads are under way before the first result is used.
template <int V, typename T, int N>
__device__ inline void load_rows(const ColumnTiles& t, const T* from, Pack<T, V> (&rows)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) rows[i] = load_pack<V>(from + i * t.lanes * t.channels);
}

// Two numbers per tile and channel, in scratch memory: first[tile * channels + c] and second[tile * channels + c].
struct TileSums {
  float* first;
  float* second;
};

inline size_t tile_sums_floats(const ColumnTiles& t) { return 2 * static_cast<size_t>(t.tiles * t.channels); }
inline TileSums tile_sums(const ColumnTiles& t, float* scratch) { return {scratch, scratch + t.tiles * t.channels}; }

struct ColumnShared {
  union {
    float lanes[2][kColumnPack][kColumnBlock];
    double parts[2][kColumnBlock];
  };
  bool is_last;
};

// Lane 0 of each column of threads gets the sums over all lanes. Memory that one round reads is not written in the next
// round, so one barrier per round is enough.
template <int V>
__device__ inline void fold_lanes(const ColumnTiles& t, ColumnShared& s, float (&a)[V], float (&b)[V]) {
  static_assert(V <= kColumnPack);
  const int me = static_cast<int>(threadIdx.x), lane = me / t.width;
  for (int half = t.lanes / 2; half >= 1; half /= 2) {
    if (lane >= half && lane < 2 * half) {
#pragma unroll
      for (int j = 0; j < V; ++j) s.lanes[0][j][me] = a[j], s.lanes[1][j][me] = b[j];
    }
    __syncthreads();
    if (lane < half) {
#pragma unroll
      for (int j = 0; j < V; ++j) {
        a[j] += s.lanes[0][j][me + half * t.width];
        b[j] += s.lanes[1][j][me + half * t.width];
      }
    }
  }
}

// How the last block of a group shares out the group's `channels` channels: `parts` threads per channel, of which this
// one is number `part`.
template <int V>
struct GroupPlace {
  int channels, parts, part;
  int64_t channel;
  bool inside;

  __device__ GroupPlace(const ColumnTiles& t, int group)
      : channels(t.width * V),
        parts(kColumnBlock / channels),
        part(static_cast<int>(threadIdx.x) / channels),
        channel(int64_t{group} * channels + static_cast<int>(threadIdx.x) % channels),
        inside(channel < t.channels) {}
};

// Part 0 of each channel gets the sums over all parts.
template <int V>
__device__ inline void fold_parts(const GroupPlace<V>& p, ColumnShared& s, double& a, double& b) {
  const int me = static_cast<int>(threadIdx.x);
  s.parts[0][me] = a;
  s.parts[1][me] = b;
  for (int half = p.parts / 2; half >= 1; half /= 2) {
    __syncthreads();
    if (p.part < half) {
      s.parts[0][me] += s.parts[0][me + half * p.channels];
      s.parts[1][me] += s.parts[1][me + half * p.channels];
    }
  }
  a = s.parts[0][me];
  b = s.parts[1][me];
}

// Adds up tiles in join_tiles().
struct AddTile {
  __device__ void operator()(int64_t, int, double first, double second, double& a, double& b) const {
    a += first;
    b += second;
  }
};

// Ends a reduction. `first` and `second` are what lane 0 of each column of threads has to say of its tile, which goes
// to `sums`. Then the group's last block calls join(channel, tile, first, second, a, b) for every tile, where a and b
// start at 0 and are folded by addition, and finish(channel, a, b) for every channel. `tickets` has one for each group.
template <int V, typename Join, typename Finish>
__device__ inline void join_tiles(const ColumnTiles& t, const ColumnPlace<V>& p, const float (&first)[V],
                                  const float (&second)[V], const TileSums& sums, unsigned* tickets, ColumnShared& s,
                                  const Join& join, const Finish& finish) {
  if (p.lane == 0 && p.inside) {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      sums.first[p.tile * t.channels + p.channel + j] = first[j];
      sums.second[p.tile * t.channels + p.channel + j] = second[j];
    }
  }
  if (!last_block(tickets + p.group, static_cast<unsigned>(t.tiles), s.is_last)) return;
  const GroupPlace<V> g(t, p.group);
  double a = 0, b = 0;
  if (g.inside) {
#pragma unroll 8
    for (int tile = g.part; tile < t.tiles; tile += g.parts) {
      const int64_t at = tile * t.channels + g.channel;
      join(g.channel, tile, static_cast<double>(sums.first[at]), static_cast<double>(sums.second[at]), a, b);
    }
  }
  fold_parts(g, s, a, b);
  if (g.part == 0 && g.inside) finish(g.channel, a, b);
}

}  // namespace dgc::cuda
