// y = f(x) element by element: sums, activations and their derivatives, conversions. Each element is read once and
// written once; y may be x, dx may be dy. Arithmetic is in fp32, rounded to T at the end. In sums, activations and
// conversions a NaN stays a NaN.
#include <type_traits>

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

template <typename T, int V>
struct Add : ElementwiseKernel {
  static constexpr const char* kName = "add";
  struct Args {
    const T* x;
    T* y;
    int64_t n;
  };

  __device__ static void run(const Args& a, Shared&) {
    each_element<V>(a.n, [&]<int N>(int64_t i) {
      float x[N], y[N];
      load(a.x + i, x);
      load(a.y + i, y);
#pragma unroll
      for (int j = 0; j < N; ++j) y[j] += x[j];
      store(y, a.y + i);
    });
  }
};

template <int V>
struct Subtract : ElementwiseKernel {
  static constexpr const char* kName = "subtract";
  struct Args {
    const float *a, *b;
    float* y;
    int64_t n;
  };

  __device__ static void run(const Args& args, Shared&) {
    each_element<V>(args.n, [&]<int N>(int64_t i) {
      float a[N], b[N];
      load(args.a + i, a);
      load(args.b + i, b);
#pragma unroll
      for (int j = 0; j < N; ++j) a[j] -= b[j];
      store(a, args.y + i);
    });
  }
};

template <typename T, int V>
struct ActivationForward : ElementwiseKernel {
  static constexpr const char* kName = "activation_forward";
  struct Args {
    Activation kind;
    const T* x;
    T* y;
    int64_t n;
  };

  __device__ static float value(Activation kind, float x) {
    switch (kind) {
      case Activation::relu:
        return x < 0 ? 0 : x;  // so that NaN stays NaN
      case Activation::tanh:
        return tanhf(x);
      case Activation::clipped_relu:
        return x < 0 ? 0 : x > kReluClip ? kReluClip : x;
      case Activation::sigmoid:
        return 1 / (1 + expf(-x));
    }
    return NAN;
  }
  __device__ static void run(const Args& a, Shared&) {
    each_element<V>(a.n, [&]<int N>(int64_t i) {
      float x[N];
      load(a.x + i, x);
#pragma unroll
      for (int j = 0; j < N; ++j) x[j] = value(a.kind, x[j]);
      store(x, a.y + i);
    });
  }
};

template <typename T, int V>
struct ActivationBackward : ElementwiseKernel {
  static constexpr const char* kName = "activation_backward";
  struct Args {
    Activation kind;
    const T* y;
    const T* dy;
    T* dx;
    int64_t n;
  };

  __device__ static float gradient(Activation kind, float y, float dy) {
    switch (kind) {
      case Activation::relu:
        return y > 0 ? dy : 0;
      case Activation::tanh:
        return dy * (1 - y * y);
      case Activation::clipped_relu:
        return y > 0 && y < kReluClip ? dy : 0;
      case Activation::sigmoid:
        return dy * (y * (1 - y));
    }
    return NAN;
  }
  __device__ static void run(const Args& a, Shared&) {
    each_element<V>(a.n, [&]<int N>(int64_t i) {
      float y[N], d[N];
      load(a.y + i, y);
      load(a.dy + i, d);
#pragma unroll
      for (int j = 0; j < N; ++j) d[j] = gradient(a.kind, y[j], d[j]);
      store(d, a.dx + i);
    });
  }
};

template <typename From, typename To, int V>
struct Convert : ElementwiseKernel {
  static constexpr const char* kName = "convert";
  struct Args {
    const From* x;
    To* y;
    int64_t n;
  };

  __device__ static void run(const Args& a, Shared&) {
    each_element<V>(a.n, [&]<int N>(int64_t i) {
      float x[N];
      load(a.x + i, x);
      store(x, a.y + i);
    });
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::add(ConstView x, View y) {
  Queue queue(*this);
  const int64_t n = y.numel();
  dispatch(y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<Add<T, V>>(elementwise_blocks(n, V), {pointer<T>(x), pointer<T>(y), n});
    };
    dispatch_packs<T>(0, run, x.data, y.data);
  });
}

void KernelBackend::subtract(ConstView a, ConstView b, View y) {
  Queue queue(*this);
  const int64_t n = y.numel();
  const auto run = [&]<int V>() { queue.run<Subtract<V>>(elementwise_blocks(n, V), {a.f32(), b.f32(), y.f32(), n}); };
  dispatch_packs<float>(0, run, a.data, b.data, y.data);
}

void KernelBackend::activation_forward(Activation kind, ConstView x, View y) {
  Queue queue(*this);
  const int64_t n = y.numel();
  dispatch(y.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<ActivationForward<T, V>>(elementwise_blocks(n, V), {kind, pointer<T>(x), pointer<T>(y), n});
    };
    dispatch_packs<T>(0, run, x.data, y.data);
  });
}

void KernelBackend::activation_backward(Activation kind, ConstView y, ConstView dy, View dx) {
  Queue queue(*this);
  const int64_t n = dx.numel();
  dispatch(dx.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      queue.run<ActivationBackward<T, V>>(elementwise_blocks(n, V),
                                          {kind, pointer<T>(y), pointer<T>(dy), pointer<T>(dx), n});
    };
    dispatch_packs<T>(0, run, y.data, dy.data, dx.data);
  });
}

// A thread takes four elements at a time, which are 16 bytes of the widest type.
void KernelBackend::convert(ConstView x, View y) {
  Queue queue(*this);
  if (x.dtype == y.dtype) return queue.device().copy(y.data, x.data, y.bytes());
  const int64_t n = y.numel();
  dispatch(x.dtype, [&]<typename From>() {
    dispatch(y.dtype, [&]<typename To>() {
      if constexpr (!std::is_same_v<From, To>) {
        const auto run = [&]<int V>() {
          queue.run<Convert<From, To, V>>(elementwise_blocks(n, V), {pointer<From>(x), pointer<To>(y), n});
        };
        dispatch_packs<float>(0, run, x.data, y.data);
      }
    });
  });
}

}  // namespace dgc
