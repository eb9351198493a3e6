// Pooling over windows. Forward reads each window once (where windows overlap, from the cache) and writes one output
// and, for max, which tap of the window was the largest, in 16 bits per output. Backward gathers: each input pixel adds
// up the outputs whose windows hold the pixel, in the order of the outputs, so there are no atomics and the result has
// the CPU's bits in fp32. Sums run in fp32. Of equal values the first tap wins; a NaN wins over every number.
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

// PoolArgs in 32-bit numbers, whose divisions are fast; packs are counted in 32 bits too.
struct PoolSize {
  bool max;
  unsigned packs;    // packs of the output in forward, of the input in backward; a thread takes one
  unsigned vectors;  // packs of a pixel
  int in_h, in_w, out_h, out_w, channels;
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
};

// Returns the index along the last axis. `rest` then counts the outer axes.
__device__ inline int last_axis(unsigned& rest, unsigned size) {
  const unsigned at = rest % size;
  rest /= size;
  return static_cast<int>(at);
}

template <typename T, int V>
struct PoolForward : ElementwiseKernel {
  static constexpr const char* kName = "pool_forward";
  struct Args {
    PoolSize size;
    float share;  // weight of one tap in an average
    const T* x;
    T* y;
    uint16_t* saved;  // may be null
  };

  __device__ static void run(const Args& a, Shared&) {
    const PoolSize& s = a.size;
    const unsigned pack = blockIdx.x * kBlock + threadIdx.x;
    if (pack >= s.packs) return;
    unsigned rest = pack;
    const int channel = last_axis(rest, s.vectors) * V;
    const int left = last_axis(rest, static_cast<unsigned>(s.out_w)) * s.stride_w - s.pad_w;
    const int top = last_axis(rest, static_cast<unsigned>(s.out_h)) * s.stride_h - s.pad_h;
    const T* const image = a.x + int64_t{rest} * s.in_h * s.in_w * s.channels + channel;
    float y[V];
    uint16_t winner[V] = {};
#pragma unroll
    for (int j = 0; j < V; ++j) y[j] = s.max ? -INFINITY : 0.f;
    for (int kh = top < 0 ? -top : 0; kh < s.kernel_h && top + kh < s.in_h; ++kh) {
      for (int kw = left < 0 ? -left : 0; kw < s.kernel_w && left + kw < s.in_w; ++kw) {
        float x[V];
        load(image + (int64_t{top + kh} * s.in_w + left + kw) * s.channels, x);
#pragma unroll
        for (int j = 0; j < V; ++j) {
          if (!s.max) {
            y[j] += a.share * x[j];
          } else if (x[j] > y[j] || x[j] != x[j]) {
            y[j] = x[j];
            winner[j] = static_cast<uint16_t>(kh * s.kernel_w + kw);
          }
        }
      }
    }
    store(y, a.y + int64_t{pack} * V);
    if (s.max && a.saved != nullptr) {
      Pack<uint16_t, V> packed;
      memcpy(&packed, winner, sizeof packed);
      store_pack<V>(packed, a.saved + int64_t{pack} * V);
    }
  }
};

template <typename T, int V>
struct PoolBackward : ElementwiseKernel {
  static constexpr const char* kName = "pool_backward";
  struct Args {
    PoolSize size;
    float share;
    const T* dy;
    const uint16_t* saved;
    T* dx;
  };

  // The first window that holds pixel `at`, where `at` counts from the start of the padding.
  __device__ static int first_window(int at, int kernel, int stride) {
    return at < kernel ? 0 : (at - kernel) / stride + 1;
  }

  __device__ static void run(const Args& a, Shared&) {
    const PoolSize& s = a.size;
    const unsigned pack = blockIdx.x * kBlock + threadIdx.x;
    if (pack >= s.packs) return;
    unsigned rest = pack;
    const int channel = last_axis(rest, s.vectors) * V;
    const int w = last_axis(rest, static_cast<unsigned>(s.in_w)) + s.pad_w;
    const int h = last_axis(rest, static_cast<unsigned>(s.in_h)) + s.pad_h;
    const int64_t image = int64_t{rest} * s.out_h * s.out_w;
    float dx[V] = {};
    for (int oh = first_window(h, s.kernel_h, s.stride_h); oh < s.out_h && oh * s.stride_h <= h; ++oh) {
      for (int ow = first_window(w, s.kernel_w, s.stride_w); ow < s.out_w && ow * s.stride_w <= w; ++ow) {
        const int64_t at = (image + int64_t{oh} * s.out_w + ow) * s.channels + channel;
        float dy[V];
        load(a.dy + at, dy);
        if (!s.max) {
#pragma unroll
          for (int j = 0; j < V; ++j) dx[j] += a.share * dy[j];
        } else {
          const auto tap = static_cast<uint16_t>((h - oh * s.stride_h) * s.kernel_w + w - ow * s.stride_w);
          uint16_t winner[V];
          const auto packed = load_pack<V>(a.saved + at);
          memcpy(winner, &packed, sizeof packed);
#pragma unroll
          for (int j = 0; j < V; ++j) dx[j] += winner[j] == tap ? dy[j] : 0;
        }
      }
    }
    store(dx, a.dx + int64_t{pack} * V);
  }
};

// `pixels` is the number of pixels of all images: of the output in forward, of the input in backward.
inline PoolSize pool_size(const PoolArgs& a, int64_t pixels, int v) {
  const int64_t packs = pixels * a.channels / v;
  DGC_CHECK(packs < int64_t{1} << 31, "an image batch of at most 2^31 packs");
  return {.max = a.kind == PoolKind::max,
          .packs = static_cast<unsigned>(packs),
          .vectors = static_cast<unsigned>(a.channels / v),
          .in_h = static_cast<int>(a.in_h),
          .in_w = static_cast<int>(a.in_w),
          .out_h = static_cast<int>(a.out_h()),
          .out_w = static_cast<int>(a.out_w()),
          .channels = static_cast<int>(a.channels),
          .kernel_h = static_cast<int>(a.kernel_h),
          .kernel_w = static_cast<int>(a.kernel_w),
          .stride_h = static_cast<int>(a.stride_h),
          .stride_w = static_cast<int>(a.stride_w),
          .pad_h = static_cast<int>(a.pad_h),
          .pad_w = static_cast<int>(a.pad_w)};
}

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::pool_forward(const PoolArgs& args, ConstView x, View y, View saved) {
  Queue queue(*this);
  auto* const winners = static_cast<uint16_t*>(saved.data);
  dispatch(y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      const PoolSize size = pool_size(args, args.batch * args.out_h() * args.out_w(), V);
      queue.run<PoolForward<T, V>>(elementwise_blocks(size.packs, 1),
                                   {size, args.average_share(), pointer<T>(x), pointer<T>(y), winners});
    };
    dispatch_packs<T>(args.channels, run, x.data, y.data, saved.data);
  });
}

void KernelBackend::pool_backward(const PoolArgs& args, ConstView dy, ConstView saved, View dx) {
  Queue queue(*this);
  const auto* const winners = static_cast<const uint16_t*>(saved.data);
  dispatch(dx.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      const PoolSize size = pool_size(args, args.batch * args.in_h * args.in_w, V);
      queue.run<PoolBackward<T, V>>(elementwise_blocks(size.packs, 1),
                                    {size, args.average_share(), pointer<T>(dy), winners, pointer<T>(dx)});
    };
    dispatch_packs<T>(args.channels, run, dy.data, saved.data, dx.data);
  });
}

}  // namespace dgc
