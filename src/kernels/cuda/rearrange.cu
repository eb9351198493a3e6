// Ops that move elements: the option-A shortcut and transpose (of any type, since only the type's size matters), and
// the global mean, which is summed in fp32, row after row, as on the CPU. Each output element is written once and each
// input element is read at most once, except that the gradient of the mean reads dy for every pixel. Gradients gather,
// so they need no atomics.
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

template <typename T>
struct GlobalPoolForward : ElementwiseKernel {
  static constexpr const char* kName = "global_pool_forward";
  struct Args {
    GlobalPoolArgs size;
    const T* x;
    T* y;
  };

  __device__ static void run(const Args& a, Shared&) {
    const int64_t channels = a.size.channels, out = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    if (out >= a.size.batch * channels) return;
    const T* const x = a.x + out / channels * a.size.spatial * channels + out % channels;
    float sum = 0;
#pragma unroll 8
    for (int64_t r = 0; r < a.size.spatial; ++r) sum += to_float(x[r * channels]);
    a.y[out] = from_float<T>(sum * (1.f / static_cast<float>(a.size.spatial)));
  }
};

template <typename T, int V>
struct GlobalPoolBackward : ElementwiseKernel {
  static constexpr const char* kName = "global_pool_backward";
  struct Args {
    GlobalPoolArgs size;
    const T* dy;
    T* dx;
  };

  __device__ static void run(const Args& a, Shared&) {
    const int64_t image = a.size.spatial * a.size.channels, n = a.size.batch * image;
    const int64_t at = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * V;
    if (at >= n) return;
    float d[V];
    load(a.dy + at / image * a.size.channels + at % a.size.channels, d);
    const float share = 1.f / static_cast<float>(a.size.spatial);
#pragma unroll
    for (int j = 0; j < V; ++j) d[j] *= share;
    store(d, a.dx + at);
  }
};

template <typename T, int V>
struct ShortcutForward : ElementwiseKernel {
  static constexpr const char* kName = "shortcut_forward";
  struct Args {
    ShortcutArgs size;
    int64_t out_h, out_w, before;  // channels of zeros before
    const T* x;
    T* y;
  };

  __device__ static void run(const Args& a, Shared&) {
    const ShortcutArgs& s = a.size;
    const int64_t at = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * V;
    if (at >= s.batch * a.out_h * a.out_w * s.out_c) return;
    const int64_t channel = at % s.out_c - a.before, pixel = at / s.out_c;
    const int64_t w = pixel % a.out_w * s.stride, row = pixel / a.out_w;
    const int64_t h = row % a.out_h * s.stride, image = row / a.out_h;
    Pack<T, V> pack{};
    if (channel >= 0 && channel < s.in_c) {
      pack = load_pack<V>(a.x + ((image * s.in_h + h) * s.in_w + w) * s.in_c + channel);
    }
    store_pack<V>(pack, a.y + at);
  }
};

template <typename T, int V>
struct ShortcutBackward : ElementwiseKernel {
  static constexpr const char* kName = "shortcut_backward";
  struct Args {
    ShortcutArgs size;
    int64_t out_h, out_w, before;
    const T* dy;
    T* dx;
  };

  __device__ static void run(const Args& a, Shared&) {
    const ShortcutArgs& s = a.size;
    const int64_t at = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * V;
    if (at >= s.batch * s.in_h * s.in_w * s.in_c) return;
    const int64_t channel = at % s.in_c + a.before, pixel = at / s.in_c;
    const int64_t w = pixel % s.in_w, row = pixel / s.in_w, h = row % s.in_h, image = row / s.in_h;
    Pack<T, V> pack{};
    if (h % s.stride == 0 && w % s.stride == 0) {
      pack = load_pack<V>(a.dy + ((image * a.out_h + h / s.stride) * a.out_w + w / s.stride) * s.out_c + channel);
    }
    store_pack<V>(pack, a.dx + at);
  }
};

// y [columns, rows] = x [rows, columns] for each image of a batch. Squares pass through shared memory, so that x is
// read and y is written along rows.
template <typename T>
struct Transpose {
  static constexpr const char* kName = "transpose";
  static constexpr int kBlock = 256;
  static constexpr int kSide = 32;
  struct Args {
    int64_t rows, columns;
    int64_t squares_down, squares_across;
    const T* x;
    T* y;
  };
  struct Shared {
    T square[kSide][kSide + 1];  // one column more, so that the elements of a column lie in different banks
  };

  __device__ static void run(const Args& a, Shared& s) {
    const int64_t across = blockIdx.x % a.squares_across, down = blockIdx.x / a.squares_across % a.squares_down;
    const int64_t image = blockIdx.x / (a.squares_across * a.squares_down) * a.rows * a.columns;
    const int64_t row = down * kSide, column = across * kSide;
    const int x = static_cast<int>(threadIdx.x) % kSide, first = static_cast<int>(threadIdx.x) / kSide;
    for (int y = first; y < kSide; y += kBlock / kSide) {
      if (row + y < a.rows && column + x < a.columns) {
        s.square[y][x] = a.x[image + (row + y) * a.columns + column + x];
      }
    }
    __syncthreads();
    for (int y = first; y < kSide; y += kBlock / kSide) {
      if (column + y < a.columns && row + x < a.rows) a.y[image + (column + y) * a.rows + row + x] = s.square[x][y];
    }
  }
};

// Transpose for images that change their order too.
template <typename T>
struct SwapAxes : ElementwiseKernel {
  static constexpr const char* kName = "swap_axes";
  struct Args {
    TransposeArgs size;
    const T* x;
    T* y;
  };

  __device__ static void run(const Args& a, Shared&) {
    const TransposeArgs& s = a.size;
    const int64_t to = int64_t{blockIdx.x} * kBlock + threadIdx.x, block = s.rows * s.columns;
    if (to >= s.outer * s.inner * block) return;
    const int64_t row = to % s.rows, column = to / s.rows % s.columns, at = to / block;
    a.y[to] = a.x[(at % s.outer * s.inner + at / s.outer) * block + row * s.columns + column];
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::global_pool_forward(const GlobalPoolArgs& args, ConstView x, View y) {
  Queue queue(*this);
  dispatch(y.dtype, [&]<typename T>() {
    queue.run<GlobalPoolForward<T>>(elementwise_blocks(args.batch * args.channels, 1),
                                    {args, pointer<T>(x), pointer<T>(y)});
  });
}

void KernelBackend::global_pool_backward(const GlobalPoolArgs& args, ConstView dy, View dx) {
  Queue queue(*this);
  dispatch(dx.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<GlobalPoolBackward<T, V>>(elementwise_blocks(dx.numel(), V), {args, pointer<T>(dy), pointer<T>(dx)});
    };
    dispatch_packs<T>(args.channels, run, dy.data, dx.data);
  });
}

void KernelBackend::shortcut_forward(const ShortcutArgs& args, ConstView x, View y) {
  Queue queue(*this);
  const int64_t before = (args.out_c - args.in_c) / 2;
  dispatch_size(y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<ShortcutForward<T, V>>(elementwise_blocks(args.batch * args.out_h() * args.out_w() * args.out_c, V),
                                       {args, args.out_h(), args.out_w(), before, pointer<T>(x), pointer<T>(y)});
    };
    dispatch_packs<T>(args.in_c | args.out_c | before, run, x.data, y.data);
  });
}

void KernelBackend::shortcut_backward(const ShortcutArgs& args, ConstView dy, View dx) {
  Queue queue(*this);
  const int64_t before = (args.out_c - args.in_c) / 2;
  dispatch_size(dx.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<ShortcutBackward<T, V>>(elementwise_blocks(args.batch * args.in_h * args.in_w * args.in_c, V),
                                        {args, args.out_h(), args.out_w(), before, pointer<T>(dy), pointer<T>(dx)});
    };
    dispatch_packs<T>(args.in_c | args.out_c | before, run, dy.data, dx.data);
  });
}

void KernelBackend::transpose(const TransposeArgs& args, ConstView x, View y) {
  Queue queue(*this);
  const int64_t images = args.outer * args.inner;
  // Images that keep their order are turned square by square, unless they are a single row or column.
  const bool by_squares = (args.outer == 1 || args.inner == 1) && args.rows > 1 && args.columns > 1;
  dispatch_size(y.dtype, [&]<typename T>() {
    if (!by_squares) {
      return queue.run<SwapAxes<T>>(elementwise_blocks(images * args.rows * args.columns, 1),
                                    {args, pointer<T>(x), pointer<T>(y)});
    }
    constexpr int64_t side = Transpose<T>::kSide;
    const int64_t down = (args.rows + side - 1) / side, across = (args.columns + side - 1) / side;
    queue.run<Transpose<T>>(images * down * across,
                            {args.rows, args.columns, down, across, pointer<T>(x), pointer<T>(y)});
  });
}

}  // namespace dgc
