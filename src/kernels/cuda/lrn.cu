// Local response normalisation across channels (LrnArgs). With s_c = k + alpha / size * (sum of x^2 over c's window):
//   y_c  = x_c * s_c^-beta
//   dx_c = dy_c * s_c^-beta - 2 alpha beta / size * x_c * sum over the windows that hold c of dy_j x_j s_j^(-beta - 1)
// The window of c is [c - size / 2, c + (size - 1) / 2]. A thread takes a pack of channels where the window has 5, as
// AlexNet's, else one element. It reads the neighbours from the cache and, in backward, their terms of the sum from
// shared memory. Sums are fp32 and are made afresh for each element, channel after channel: with beta = 3/4 (square
// roots only) the result has the CPU's bits in fp32. A NaN spreads over its window.
#include <limits>

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

inline constexpr int kLrnBlock = 256;
inline constexpr int kLrnWindow = LrnArgs::kMostSize;

struct LrnShape {
  int64_t n;  // elements
  int channels, size;
  float share, k, beta;  // share: alpha / size
  float factor;          // 2 alpha beta / size
};

template <typename T>
__device__ inline float lrn_scale(const LrnShape& a, const T* x, int channel) {
  const int from = channel - a.size / 2, to = channel + (a.size - 1) / 2;
  float sum = 0;
  for (int c = from < 0 ? 0 : from; c <= to && c < a.channels; ++c) {
    const float value = to_float(x[c - channel]);
    sum += value * value;
  }
  return a.k + a.share * sum;
}

__device__ inline float lrn_power(float scale, float beta) {
  if (beta != 0.75f) return powf(scale, -beta);
  const float root = sqrtf(scale);
  return 1 / (root * sqrtf(root));
}

// Windows of 5 channels, V channels at a time. Channels beyond the first and the last count as zeros, which change no
// bit of a sum: sums start at +0.
inline constexpr int kLrnPackWindow = 5, kLrnHalf = kLrnPackWindow / 2;

template <int V>
__device__ inline float lrn_sum(const float (&terms)[V + 2 * kLrnHalf], int j) {
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kLrnPackWindow; ++c) sum += terms[j + c];
  return sum;
}

template <int V>
__device__ inline int lrn_channel(const LrnShape& a, int64_t pack) {
  return static_cast<int>(static_cast<uint32_t>(pack) % static_cast<uint32_t>(a.channels / V)) * V;
}

// Loads the pack at x, of which `channel` is the first channel, and finds the scales.
template <int V, typename T>
__device__ inline void lrn_scales(const LrnShape& a, const T* x, int channel, float (&own)[V], float (&scales)[V]) {
  float squares[V + 2 * kLrnHalf], left[kLrnHalf] = {}, right[kLrnHalf] = {};
  load(x, own);
  if (channel > 0) load(x - kLrnHalf, left);
  if (channel + V < a.channels) load(x + V, right);
#pragma unroll
  for (int j = 0; j < kLrnHalf; ++j) {
    squares[j] = left[j] * left[j];
    squares[kLrnHalf + V + j] = right[j] * right[j];
  }
#pragma unroll
  for (int j = 0; j < V; ++j) squares[kLrnHalf + j] = own[j] * own[j];
#pragma unroll
  for (int j = 0; j < V; ++j) scales[j] = a.k + a.share * lrn_sum<V>(squares, j);
}

template <typename T>
struct LrnForwardArgs {
  LrnShape shape;
  const T* x;
  T* y;
};

template <typename T>
struct LrnBackwardArgs {
  LrnShape shape;
  const T* x;
  const T* dy;
  T* dx;
};

template <typename T, int V>
struct LrnForward {
  static constexpr const char* kName = "lrn_forward";
  static constexpr int kBlock = kLrnBlock;
  using Args = LrnForwardArgs<T>;
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const int64_t pack = int64_t{blockIdx.x} * kBlock + threadIdx.x, at = pack * V;
    if (at >= a.shape.n) return;
    float x[V], y[V];
    lrn_scales(a.shape, a.x + at, lrn_channel<V>(a.shape, pack), x, y);
#pragma unroll
    for (int j = 0; j < V; ++j) y[j] = x[j] * lrn_power(y[j], a.shape.beta);
    store(y, a.y + at);
  }
};

template <typename T, int V>
struct LrnBackward {
  static constexpr const char* kName = "lrn_backward";
  static constexpr int kBlock = kLrnBlock;
  using Args = LrnBackwardArgs<T>;
  struct Shared {  // dy x s^(-beta - 1) at the first and the last channels of packs, also of one pack on either side
    float first[kLrnBlock + 2][kLrnHalf];
    float last[kLrnBlock + 2][kLrnHalf];
  };

  // A pack, and what is made of it.
  struct Channels {
    float x[V], dy[V], power[V], part[V];

    __device__ Channels(const Args& a, int64_t pack, int channel) {
      lrn_scales(a.shape, a.x + pack * V, channel, x, part);
      load(a.dy + pack * V, dy);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        const float scale = part[j];
        power[j] = lrn_power(scale, a.shape.beta);
        part[j] = dy[j] * x[j] * power[j] / scale;
      }
    }
    __device__ void share(Shared& s, int place) const {
#pragma unroll
      for (int j = 0; j < kLrnHalf; ++j) {
        s.first[place][j] = part[j];
        s.last[place][j] = part[V - kLrnHalf + j];
      }
    }
  };

  __device__ static void run(const Args& a, Shared& s) {
    const LrnShape& shape = a.shape;
    const int64_t first = int64_t{blockIdx.x} * kBlock, packs = shape.n / V;
    const int me = static_cast<int>(threadIdx.x);
    if (me < 2) {
      const int64_t beside = me == 0 ? first - 1 : first + kBlock;
      if (beside >= 0 && beside < packs) {
        Channels(a, beside, lrn_channel<V>(shape, beside)).share(s, me == 0 ? 0 : kBlock + 1);
      }
    }
    const int64_t number = first + me < packs ? first + me : packs - 1;
    const int channel = lrn_channel<V>(shape, number);
    const Channels pack(a, number, channel);
    pack.share(s, me + 1);
    __syncthreads();
    if (first + me >= packs) return;
    float parts[V + 2 * kLrnHalf], dx[V];
#pragma unroll
    for (int j = 0; j < kLrnHalf; ++j) {
      parts[j] = channel > 0 ? s.last[me][j] : 0.f;
      parts[kLrnHalf + V + j] = channel + V < shape.channels ? s.first[me + 2][j] : 0.f;
    }
#pragma unroll
    for (int j = 0; j < V; ++j) parts[kLrnHalf + j] = pack.part[j];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      dx[j] = pack.dy[j] * pack.power[j] - shape.factor * pack.x[j] * lrn_sum<V>(parts, j);
    }
    store(dx, a.dx + number * V);
  }
};

template <typename T>
struct LrnForward<T, 1> {
  static constexpr const char* kName = "lrn_forward";
  static constexpr int kBlock = kLrnBlock;
  using Args = LrnForwardArgs<T>;
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i >= a.shape.n) return;
    const float scale = lrn_scale(a.shape, a.x + i, static_cast<int>(i % a.shape.channels));
    a.y[i] = from_float<T>(to_float(a.x[i]) * lrn_power(scale, a.shape.beta));
  }
};

template <typename T>
struct LrnBackward<T, 1> {
  static constexpr const char* kName = "lrn_backward";
  static constexpr int kBlock = kLrnBlock;
  using Args = LrnBackwardArgs<T>;
  struct Shared {  // for the block's elements and half a window on either side
    float power[kLrnBlock + kLrnWindow - 1];
    float part[kLrnBlock + kLrnWindow - 1];  // dy x s^(-beta - 1)
  };

  __device__ static void run(const Args& a, Shared& s) {
    const LrnShape& shape = a.shape;
    const int before = (shape.size - 1) / 2, behind = shape.size / 2;  // channels whose windows hold an element
    const int64_t first = int64_t{blockIdx.x} * kBlock;
    for (int at = static_cast<int>(threadIdx.x); at < kBlock + shape.size - 1; at += kBlock) {
      const int64_t i = first - before + at;
      if (i < 0 || i >= shape.n) continue;
      const float scale = lrn_scale(shape, a.x + i, static_cast<int>(i % shape.channels));
      s.power[at] = lrn_power(scale, shape.beta);
      s.part[at] = to_float(a.dy[i]) * to_float(a.x[i]) * s.power[at] / scale;
    }
    __syncthreads();
    const int64_t i = first + threadIdx.x;
    if (i >= shape.n) return;
    const int channel = static_cast<int>(i % shape.channels), at = static_cast<int>(threadIdx.x) + before;
    float sum = 0;
    for (int c = channel < before ? -channel : -before; c <= behind && channel + c < shape.channels; ++c) {
      sum += s.part[at + c];
    }
    const float x = to_float(a.x[i]), dy = to_float(a.dy[i]);
    a.dx[i] = from_float<T>(dy * s.power[at] - shape.factor * x * sum);
  }
};

inline LrnShape lrn_shape(const LrnArgs& args) {
  DGC_CHECK(args.size <= LrnArgs::kMostSize, "a local response window");
  const auto size = static_cast<float>(args.size);
  return {.n = args.batch * args.in_h * args.in_w * args.channels,
          .channels = static_cast<int>(args.channels),
          .size = static_cast<int>(args.size),
          .share = args.alpha / size,
          .k = args.k,
          .beta = args.beta,
          .factor = 2 * args.alpha * args.beta / size};
}

// The row that packs must divide: a pixel's channels, or 1 where a thread takes one element.
inline int64_t lrn_run(const LrnShape& a) {
  return a.size == kLrnPackWindow && a.n <= std::numeric_limits<uint32_t>::max() ? a.channels : 1;
}

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::lrn_forward(const LrnArgs& args, ConstView x, View y) {
  Queue queue(*this);
  const LrnShape shape = lrn_shape(args);
  dispatch(y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<LrnForward<T, V>>(elementwise_blocks(shape.n, V), {shape, pointer<T>(x), pointer<T>(y)});
    };
    dispatch_packs<T>(lrn_run(shape), run, x.data, y.data);
  });
}

// dx must not be dy or x, because neighbouring blocks read both.
void KernelBackend::lrn_backward(const LrnArgs& args, ConstView x, ConstView dy, View dx) {
  Queue queue(*this);
  const LrnShape shape = lrn_shape(args);
  dispatch(dx.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<LrnBackward<T, V>>(elementwise_blocks(shape.n, V),
                                   {shape, pointer<T>(x), pointer<T>(dy), pointer<T>(dx)});
    };
    dispatch_packs<T>(lrn_run(shape), run, x.data, dy.data, dx.data);
  });
}

}  // namespace dgc
