// y = x * keep / (1 - p). `keep` comes from Philox, so no mask is stored, and the same op on dy is the gradient. Each
// element is read and written once; y may be x. A thread takes the four elements that share a Philox block, wherever
// the stream starts, so an element's mask depends only on the element's number in the stream. In fp32 the result has
// the CPU's bits.
#include <cmath>

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/philox.cuh"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

template <typename T>
struct Dropout : ElementwiseKernel {
  static constexpr const char* kName = "dropout";
  struct Args {
    const T* x;
    T* y;
    int64_t n;
    uint32_t threshold;  // an element whose 24 random bits are below this is dropped
    float gain;
    uint64_t seed, stream, per_step, first;
    const StepControl* control;
  };

  __device__ static void run(const Args& a, Shared&) {
    const uint64_t step = a.control == nullptr ? 0 : a.control->step;
    const uint64_t first = step * a.per_step + a.first;
    const int64_t number = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    const int64_t at = number * 4 - static_cast<int64_t>(first % 4);
    if (at >= a.n) return;
    uint32_t bits[4];
    philox(a.seed, a.stream, first / 4 + static_cast<uint64_t>(number), bits);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t i = at + j;
      if (i < 0 || i >= a.n) continue;
      a.y[i] = from_float<T>(bits[j] >> 8 >= a.threshold ? to_float(a.x[i]) * a.gain : 0.f);
    }
  }
};

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::dropout_forward(const DropoutArgs& args, ConstView x, View y) {
  Queue queue(*this);
  dispatch(y.dtype, [&]<typename T>() {
    // The stream may start anywhere within a Philox block, so up to three more elements are covered.
    const int64_t blocks = args.numel == 0 ? 0 : elementwise_blocks(args.numel + 3, 4);
    queue.run<Dropout<T>>(blocks, {.x = pointer<T>(x),
                                   .y = pointer<T>(y),
                                   .n = args.numel,
                                   .threshold = static_cast<uint32_t>(std::ceil(double{args.p} * 0x1p24)),
                                   .gain = 1 / (1 - args.p),
                                   .seed = args.seed,
                                   .stream = args.stream,
                                   .per_step = args.per_step,
                                   .first = args.first,
                                   .control = args.control});
  });
}

}  // namespace dgc
