// Sums whose order is a definition, so that every backend gets the same bits.
//
// SumSquares: the sum of x^2 in double, in the order of kernels/sum_order.h. Half a warp takes a chunk, with one thread
// per lane of the chunk, and the last block to finish adds up the chunks. There is one launch, which reads 4 bytes per
// element. A NaN or an infinity makes the sum not finite.
// OrderedSum: out = ((x0 + x1) + x2) + ... in fp32. It reads 4 bytes per element and summand, and writes 4 per element.
#include <algorithm>
#include <span>

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/last_block.cuh"
#include "kernels/cuda/queue.h"
#include "kernels/sum_order.h"

namespace dgc::cuda {

struct SumSquares {
  static constexpr const char* kName = "sum_squares";
  static constexpr int kBlock = 256;
  static constexpr int kChunksPerBlock = kBlock / kSumLanes;
  static_assert(kSumLanes == 16 && kSumChunkLanes % kBlock == 0);
  struct Args {
    const float* x;
    int64_t n;
    int64_t chunks;
    double* sums;  // one per chunk
    double* out;
    unsigned* ticket;
  };
  struct Shared {
    double lanes[kSumChunkLanes];
    bool is_last;
  };

  __device__ static double square_added(float x, double sum) {
    return fma(static_cast<double>(x), static_cast<double>(x), sum);  // the product is exact, so fma rounds like a sum
  }

  // Adds up the squares of this thread's lane of the chunk, one after another.
  __device__ static double lane_of_chunk(const float* x, int64_t n, int lane) {
    constexpr int kAhead = 16;  // loads that are under way at once
    double sum = 0;
    int64_t i = lane;
    for (; i + (kAhead - 1) * kSumLanes < n; i += kAhead * kSumLanes) {
      float next[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) next[j] = x[i + j * kSumLanes];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) sum = square_added(next[j], sum);
    }
    for (; i < n; i += kSumLanes) sum = square_added(x[i], sum);
    return sum;
  }

  __device__ static void run(const Args& a, Shared& s) {
    const int me = static_cast<int>(threadIdx.x), lane = me % kSumLanes;
    const int64_t chunk = int64_t{blockIdx.x} * kChunksPerBlock + me / kSumLanes;
    double sum = 0;
    if (chunk < a.chunks) {
      const int64_t at = chunk * kSumChunk, left = a.n - at;
      sum = lane_of_chunk(a.x + at, left < kSumChunk ? left : kSumChunk, lane);
    }
#pragma unroll
    for (int half = kSumLanes / 2; half >= 1; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half, kSumLanes);
    if (lane == 0 && chunk < a.chunks) a.sums[chunk] = sum;

    if (!last_block(a.ticket, gridDim.x, s.is_last)) return;
    for (int j = me; j < kSumChunkLanes; j += kBlock) {
      double total = 0;
      for (int64_t c = j; c < a.chunks; c += kSumChunkLanes) total += a.sums[c];
      s.lanes[j] = total;
    }
    for (int half = kSumChunkLanes / 2; half >= 1; half /= 2) {
      __syncthreads();
      for (int j = me; j < half; j += kBlock) s.lanes[j] += s.lanes[j + half];
    }
    if (me == 0) *a.out = s.lanes[0];
  }
};

template <int V>
struct OrderedSum : ElementwiseKernel {
  static constexpr const char* kName = "ordered_sum";
  static constexpr int kSummands = 64;
  struct Args {
    const float* x[kSummands];
    int count;
    float* out;  // may be x[0]
    int64_t n;
  };

  __device__ static void run(const Args& a, Shared&) {
    each_element<V>(a.n, [&]<int N>(int64_t i) {
      float sum[N];
      load(a.x[0] + i, sum);
#pragma unroll 4
      for (int k = 1; k < a.count; ++k) {
        float next[N];
        load(a.x[k] + i, next);
#pragma unroll
        for (int j = 0; j < N; ++j) sum[j] += next[j];
      }
      store(sum, a.out + i);
    });
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::sum_squares(ConstView x, double* out) {
  Queue queue(*this);
  const int64_t n = x.numel(), chunks = (n + kSumChunk - 1) / kSumChunk;
  auto* const sums = reinterpret_cast<double*>(queue.scratch(static_cast<size_t>(chunks) * sizeof(double)));
  // There is at least one block, so that the sum of no elements becomes 0.
  const int64_t blocks = std::max<int64_t>(1, (chunks + SumSquares::kChunksPerBlock - 1) / SumSquares::kChunksPerBlock);
  queue.run<SumSquares>(blocks, {x.f32(), n, chunks, sums, out, queue.tickets(1)});
}

// Where there are more summands than one launch takes, the next launch starts from the sum of the previous one.
void KernelBackend::ordered_sum(std::span<const float* const> x, float* out, int64_t n) {
  Queue queue(*this);
  const bool wide = aligned(out) && std::ranges::all_of(x, [](const float* p) { return aligned(p); });
  const auto run = [&]<int V>() {
    typename OrderedSum<V>::Args args{.x = {x[0]}, .count = 1, .out = out, .n = n};
    for (size_t i = 1; i < x.size(); ++i) {
      args.x[args.count++] = x[i];
      if (args.count < OrderedSum<V>::kSummands || i + 1 == x.size()) continue;
      queue.run<OrderedSum<V>>(elementwise_blocks(n, V), args);
      args.x[0] = out;
      args.count = 1;
    }
    queue.run<OrderedSum<V>>(elementwise_blocks(n, V), args);
  };
  wide ? run.template operator()<4>() : run.template operator()<1>();
}

}  // namespace dgc
