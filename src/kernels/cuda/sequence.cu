// Padded sequences (SequenceArgs): masking, reversing and the lookahead convolution. Every element of y is written
// once. The first two only move elements, of any type of their size, and read each at most once. Lengths come from the
// device, so that a recorded step serves batches of any lengths.
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/sequence_steps.cuh"

namespace dgc::cuda {

template <typename T>
struct SequenceMoveArgs {
  SequenceArgs size;
  int64_t n;  // elements
  const int32_t* lengths;
  const T* x;
  T* y;
};

template <typename T, int V>
struct SequenceMask : ElementwiseKernel {
  static constexpr const char* kName = "sequence_mask";
  using Args = SequenceMoveArgs<T>;

  __device__ static void run(const Args& a, Shared&) {
    const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * V;
    if (i >= a.n) return;
    Pack<T, V> pack{};
    if (is_valid(a.size, a.lengths, i / a.size.width)) pack = load_pack<V>(a.x + i);
    store_pack<V>(pack, a.y + i);
  }
};

template <typename T, int V>
struct SequenceReverse : ElementwiseKernel {
  static constexpr const char* kName = "sequence_reverse";
  using Args = SequenceMoveArgs<T>;

  __device__ static void run(const Args& a, Shared&) {
    const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * V;
    if (i >= a.n) return;
    const FramePlace to = frame_place(a.size, i / a.size.width);
    const int64_t valid = valid_steps(a.size, a.lengths[to.stream]);
    Pack<T, V> pack{};
    if (to.step < valid) {
      const int64_t from = frame_at(a.size, {to.stream, valid - 1 - to.step});
      pack = load_pack<V>(a.x + from * a.size.width + i % a.size.width);
    }
    store_pack<V>(pack, a.y + i);
  }
};

// y[t] = sum of w[k] * x[t + k * kDirection] over the steps that exist. The output looks at later steps (kLater), the
// gradient of the input at earlier ones (kEarlier).
inline constexpr int kLater = 1, kEarlier = -1;
template <typename T, int kDirection>
struct LookaheadSum : ElementwiseKernel {
  static constexpr const char* kName = kDirection == kLater ? "lookahead_forward" : "lookahead_backward_data";
  struct Args {
    LookaheadArgs size;
    const T* x;
    const float* w;
    T* y;
  };

  __device__ static void run(const Args& a, Shared&) {
    const LookaheadArgs& s = a.size;
    const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x, row = s.streams * s.channels;
    if (i >= s.steps * row) return;
    const int64_t step = i / row, there = kDirection == kLater ? s.steps - step : step + 1;
    const float* const w = a.w + i % s.channels * s.context;
    float sum = 0;
    for (int64_t k = 0; k < s.context && k < there; ++k) sum += w[k] * to_float(a.x[i + k * kDirection * row]);
    a.y[i] = from_float<T>(sum);
  }
};

// A block sums one weight of 32 neighbouring channels, so that a warp reads whole lines. Each of its warps takes every
// kWarps-th row, and the first adds up what they found, always in the same order.
template <typename T>
struct LookaheadWeights {
  static constexpr const char* kName = "lookahead_backward_weights";
  static constexpr int kBlock = 256, kChannels = 32, kWarps = kBlock / kChannels;
  struct Args {
    LookaheadArgs size;
    const T* x;
    const T* dy;
    float* dw;
  };
  struct Shared {
    double sums[kWarps][kChannels];
  };

  __device__ static void run(const Args& a, Shared& shared) {
    const LookaheadArgs& s = a.size;
    const int lane = static_cast<int>(threadIdx.x) % kChannels, warp = static_cast<int>(threadIdx.x) / kChannels;
    const int64_t k = blockIdx.x % s.context, channel = blockIdx.x / s.context * kChannels + lane;
    const int64_t rows = (s.steps - k) * s.streams, ahead = k * s.streams * s.channels;
    double sum = 0;
    for (int64_t r = warp; channel < s.channels && r < rows; r += kWarps) {
      const int64_t at = r * s.channels + channel;
      sum += static_cast<double>(to_float(a.dy[at]) * to_float(a.x[at + ahead]));
    }
    shared.sums[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || channel >= s.channels) return;
    for (int w = 1; w < kWarps; ++w) sum += shared.sums[w][lane];
    a.dw[channel * s.context + k] += static_cast<float>(sum);
  }
};

template <template <typename, int> typename Move>
void move_sequences(Queue queue, const SequenceArgs& args, ConstView lengths, ConstView x, View y) {
  const int64_t n = args.steps * args.streams * args.width;
  dispatch_size(y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<Move<T, V>>(elementwise_blocks(n, V), {args, n, lengths.i32(), pointer<T>(x), pointer<T>(y)});
    };
    dispatch_packs<T>(args.width, run, x.data, y.data);
  });
}

template <int kDirection>
void lookahead_sum(Queue queue, const LookaheadArgs& args, ConstView x, ConstView w, View y) {
  const int64_t n = args.steps * args.streams * args.channels;
  dispatch(y.dtype, [&]<typename T>() {
    queue.run<LookaheadSum<T, kDirection>>(elementwise_blocks(n, 1), {args, pointer<T>(x), w.f32(), pointer<T>(y)});
  });
}

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::sequence_mask(const SequenceArgs& args, ConstView lengths, ConstView x, View y) {
  move_sequences<SequenceMask>(Queue(*this), args, lengths, x, y);
}

void KernelBackend::sequence_reverse(const SequenceArgs& args, ConstView lengths, ConstView x, View y) {
  move_sequences<SequenceReverse>(Queue(*this), args, lengths, x, y);
}

void KernelBackend::lookahead_forward(const LookaheadArgs& args, ConstView x, ConstView w, View y) {
  lookahead_sum<kLater>(Queue(*this), args, x, w, y);
}

void KernelBackend::lookahead_backward(const LookaheadArgs& args, ConstView x, ConstView w, ConstView dy, View dx,
                                       View dw) {
  Queue queue(*this);
  if (dx) lookahead_sum<kEarlier>(queue, args, dy, w, dx);
  dispatch(dy.dtype, [&]<typename T>() {
    constexpr int64_t kChannels = LookaheadWeights<T>::kChannels;
    queue.run<LookaheadWeights<T>>((args.channels + kChannels - 1) / kChannels * args.context,
                                   {args, pointer<T>(x), pointer<T>(dy), dw.f32()});
  });
}

}  // namespace dgc
