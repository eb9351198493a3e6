// What is decided once per step. The numbers are read from and written to device memory, so that the host never waits.
// Each kernel works on a few numbers, in the CPU's order of operations and with every operation rounded on its own
// (--fmad=false), so the results have the CPU's bits.
#include <algorithm>
#include <span>

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

struct BeginStep {
  static constexpr const char* kName = "begin_step";
  static constexpr int kBlock = 32;
  struct Args {
    StepInput input;
    StepControl* control;
    WorkerShare* local;
    int count;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const int me = static_cast<int>(threadIdx.x);
    for (int i = me; i < a.count; i += kBlock) a.local[i] = {0, 0, 0, 0, a.input.stop ? 1.0 : 0.0};
    if (me == 0) begin_control(a.input, *a.control);
  }
};

// There is only one thread, because the sum over workers has a fixed order.
struct JudgeStep {
  static constexpr const char* kName = "judge_step";
  static constexpr int kBlock = 1;
  struct Args {
    const WorkerShare* all;
    int count;
    StepControl* control;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    double sum = 0;
    for (int i = 0; i < a.count; ++i) sum += a.all[i].square;
    const double scale = static_cast<double>(a.control->loss_scale);
    a.control->skip = sum - sum == 0 ? 0 : 1;  // infinity - infinity is NaN, as is NaN - NaN
    a.control->mean_square = sum / a.count / (scale * scale);
  }
};

struct ClipScales {
  static constexpr const char* kName = "clip_scales";
  static constexpr int kBlock = 128;
  using Args = ClipArgs;
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i < a.count) a.scales[i] = a.scale_of(sqrt(a.squares[i * a.stride]));
  }
};

// Reads and writes each byte once, or nothing at all. In nearly every step it is nothing for copy_if_skipped, so there
// are no more blocks than run at once: each that starts costs time.
template <typename T, int V, bool when_skipped>
struct CopyByVerdict : ElementwiseKernel {
  static constexpr const char* kName = when_skipped ? "copy_if_skipped" : "copy_unless_skipped";
  struct Args {
    const StepControl* control;
    const T* from;
    T* to;
    int64_t n;
  };

  __device__ static void run(const Args& a, Shared&) {
    if ((a.control->skip != 0) != when_skipped) return;
    const int64_t step = int64_t{gridDim.x} * kBlock * V;
    for (int64_t at = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * V; at < a.n; at += step) {
      pack_at<V>(at, a.n, [&]<int N>(int64_t i) { store_pack<N>(load_pack<N>(a.from + i), a.to + i); });
    }
  }
};

// There are three numbers to add, so there is one thread.
struct AddLoss {
  static constexpr const char* kName = "add_loss";
  static constexpr int kBlock = 1;
  struct Args {
    const LossStats* more;
    LossStats* sum;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) { a.sum->add(*a.more); }
};

template <bool when_skipped>
void copy_by_verdict(Queue queue, const StepControl* control, ConstView from, View to) {
  dispatch_size(to.dtype, [&]<typename T>() {
    const auto run = [&]<int V>() {
      const int64_t blocks = std::min(elementwise_blocks(to.numel(), V), int64_t{8} * queue.multiprocessors());
      queue.run<CopyByVerdict<T, V, when_skipped>>(blocks, {control, pointer<T>(from), pointer<T>(to), to.numel()});
    };
    dispatch_packs<T>(0, run, from.data, to.data);
  });
}

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::begin_step(const StepInput& input, StepControl* control, std::span<WorkerShare> local) {
  Queue(*this).run<BeginStep>(1, {input, control, local.data(), static_cast<int>(local.size())});
}

void KernelBackend::judge_step(std::span<const WorkerShare> all, StepControl* control) {
  Queue(*this).run<JudgeStep>(1, {all.data(), static_cast<int>(all.size()), control});
}

void KernelBackend::clip_scales(const ClipArgs& args) {
  Queue(*this).run<ClipScales>((args.count + ClipScales::kBlock - 1) / ClipScales::kBlock, args);
}

void KernelBackend::copy_unless_skipped(const StepControl* control, ConstView from, View to) {
  copy_by_verdict<false>(Queue(*this), control, from, to);
}

void KernelBackend::copy_if_skipped(const StepControl* control, ConstView from, View to) {
  copy_by_verdict<true>(Queue(*this), control, from, to);
}

void KernelBackend::add_loss(const LossStats* more, LossStats* sum) { Queue(*this).run<AddLoss>(1, {more, sum}); }

}  // namespace dgc
