// Local response normalisation across channels (LrnArgs). With s_c = k + alpha / size * (sum of x^2 over c's window):
//   y_c  = x_c * s_c^-beta
//   dx_c = dy_c * s_c^-beta - 2 alpha beta / size * x_c * sum over the windows that hold c of dy_j x_j s_j^(-beta - 1)
// The window of c is [c - size / 2, c + (size - 1) / 2]. A thread takes one element. It reads the neighbours from the
// cache and, in backward, their terms of the sum from shared memory. Sums are fp32 and are made afresh for each
// element, channel after channel: with beta = 3/4 (square roots only) the result has the CPU's bits in fp32. A NaN
// spreads over its window.
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

template <typename T>
struct LrnForward {
  static constexpr const char* kName = "lrn_forward";
  static constexpr int kBlock = kLrnBlock;
  struct Args {
    LrnShape shape;
    const T* x;
    T* y;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i >= a.shape.n) return;
    const float scale = lrn_scale(a.shape, a.x + i, static_cast<int>(i % a.shape.channels));
    a.y[i] = from_float<T>(to_float(a.x[i]) * lrn_power(scale, a.shape.beta));
  }
};

template <typename T>
struct LrnBackward {
  static constexpr const char* kName = "lrn_backward";
  static constexpr int kBlock = kLrnBlock;
  struct Args {
    LrnShape shape;
    const T* x;
    const T* dy;
    T* dx;
  };
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

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::lrn_forward(const LrnArgs& args, ConstView x, View y) {
  Queue queue(*this);
  const LrnShape shape = lrn_shape(args);
  dispatch(y.dtype, [&]<typename T>() {
    queue.run<LrnForward<T>>(elementwise_blocks(shape.n, 1), {shape, pointer<T>(x), pointer<T>(y)});
  });
}

// dx must not be dy or x, because neighbouring blocks read both.
void KernelBackend::lrn_backward(const LrnArgs& args, ConstView x, ConstView dy, View dx) {
  Queue queue(*this);
  const LrnShape shape = lrn_shape(args);
  dispatch(dx.dtype, [&]<typename T>() {
    queue.run<LrnBackward<T>>(elementwise_blocks(shape.n, 1), {shape, pointer<T>(x), pointer<T>(dy), pointer<T>(dx)});
  });
}

}  // namespace dgc
