// CTC loss and gradient in four launches: the norm of each step's logits, which is the log of the sum of their exp (one
// thread per step); all paths of a stream, step after step (one block per stream and direction); the gradient (one
// thread per logit); the sums over streams. States and arithmetic are those of kernels/cpu/ctc.cpp: logarithms of
// probabilities in fp32, where the largest number of each step is subtracted and added up in double. Sums run in a
// fixed order. A step whose logits have no finite norm, or a label that is no class, makes the loss and the stream's
// gradient NaN, so that the step is skipped and reported, because the host cannot look at logits and labels without
// waiting.
#include "kernels/cuda/ctc_paths.cuh"
#include "kernels/cuda/queue.h"

namespace dgc::cuda {

template <typename T>
struct CtcNorms {
  static constexpr const char* kName = "ctc_norms";
  static constexpr int kBlock = 128;
  using Args = CtcData<T>;
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    const int64_t row = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    if (row >= a.sequences.steps * a.sequences.streams || !is_valid(a.sequences, a.lengths, row)) return;
    const T* const x = a.logits + row * a.sequences.width;
    float top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < a.sequences.width; ++c) {
      const float value = to_float(x[c]);
      top = value > top ? value : top;
    }
    for (int64_t c = 0; c < a.sequences.width; ++c) sum += expf(to_float(x[c]) - top);
    a.memory.norms[row] = top + logf(sum);
  }
};

template <typename T>
struct CtcGradient : ElementwiseKernel {
  static constexpr const char* kName = "ctc_gradient";
  struct Args {
    CtcData<T> data;
    float gradient_scale;
    const StepControl* control;  // may be null
    T* dlogits;
  };

  __device__ static float gradient(const CtcData<T>& a, int64_t frame, int64_t c, float scale) {
    const FramePlace at = frame_place(a.sequences, frame);
    const int kind = a.memory.kinds[at.stream];
    if (at.step >= valid_steps(a.sequences, a.lengths[at.stream])) return 0;
    if (kind == kCtcBroken) return NAN;
    if (kind != kCtcCounted) return 0;
    const int32_t* const labels = a.labels_of(at.stream);
    const int64_t step = a.step_of(at.stream, at.step);
    const float* const from_first = a.row_of(kCtcFromFirst, at.stream, at.step);
    const float* const from_last = a.row_of(kCtcFromLast, at.stream, at.step);
    const double taken = a.memory.sweeps[kCtcFromFirst].taken[step] + a.memory.sweeps[kCtcFromLast].taken[step];
    const auto out = static_cast<float>(taken + a.memory.losses[at.stream]);
    const auto share = [&](int64_t state) { return expf(from_first[state] + from_last[state] + out); };
    float d = expf(to_float(a.logits[frame * a.sequences.width + c]) - a.memory.norms[frame]);
    for (int64_t i = 0; i <= labels[0]; ++i) {
      if (c == 0) d -= share(2 * i);
      if (c != 0 && i > 0 && labels[i] == c) d -= share(2 * i - 1);
    }
    return d * scale;
  }

  __device__ static void run(const Args& a, Shared&) {
    const SequenceArgs& size = a.data.sequences;
    const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
    if (i >= size.steps * size.streams * size.width) return;
    const float scale = a.gradient_scale * (a.control == nullptr ? 1.f : a.control->loss_scale);
    a.dlogits[i] = from_float<T>(gradient(a.data, i / size.width, i % size.width, scale));
  }
};

struct CtcStats {
  static constexpr const char* kName = "ctc_stats";
  static constexpr int kBlock = 32;
  struct Args {
    int64_t streams;
    CtcMemory memory;
    double* stats;
  };
  using Shared = NoShared;

  __device__ static void run(const Args& a, Shared&) {
    if (threadIdx.x != 0) return;
    double loss = 0, counted = 0, left_out = 0;
    for (int64_t s = 0; s < a.streams; ++s) {
      const int kind = a.memory.kinds[s];
      if (kind == kCtcCounted || kind == kCtcBroken) loss += a.memory.losses[s], counted += 1;
      if (kind == kCtcLeftOut) left_out += 1;
    }
    a.stats[0] = loss;
    a.stats[1] = counted;
    a.stats[2] = left_out;
  }
};

inline CtcMemory ctc_memory(Queue queue, const CtcArgs& args, int directions) {
  const auto frames = static_cast<size_t>(args.steps * args.streams), streams = static_cast<size_t>(args.streams);
  const auto states = static_cast<size_t>(2 * args.most_labels + 1);
  const auto sweeps = static_cast<size_t>(directions);
  const size_t doubles = streams + sweeps * frames, floats = frames + sweeps * frames * states;
  std::byte* const memory = queue.scratch(doubles * sizeof(double) + floats * sizeof(float) + streams * sizeof(int));
  auto* const losses = reinterpret_cast<double*>(memory);
  auto* const norms = reinterpret_cast<float*>(losses + doubles);
  CtcMemory made{{}, losses, norms, reinterpret_cast<int*>(norms + floats)};
  for (size_t i = 0; i < sweeps; ++i) {
    made.sweeps[i] = {norms + frames + i * frames * states, losses + streams + i * frames};
  }
  return made;
}

}  // namespace dgc::cuda

namespace dgc {

using namespace cuda;

void KernelBackend::ctc_loss(const CtcArgs& args, ConstView logits, ConstView lengths, ConstView labels, View dlogits,
                             double* stats) {
  Queue queue(*this);
  const int directions = dlogits ? 2 : 1;
  const CtcMemory memory = ctc_memory(queue, args, directions);
  const SequenceArgs sequences{.order = SequenceOrder::steps_first,
                               .steps = args.steps,
                               .streams = args.streams,
                               .width = args.classes,
                               .frames_per_step = args.frames_per_step};
  const int64_t frames = args.steps * args.streams;
  dispatch(logits.dtype, [&]<typename T>() {
    const CtcData<T> data{sequences,     args.most_labels, directions, pointer<T>(logits),
                          lengths.i32(), labels.i32(),     memory};
    constexpr int64_t kRows = CtcNorms<T>::kBlock;
    queue.run<CtcNorms<T>>((frames + kRows - 1) / kRows, data);
    queue.run<CtcPaths<T>>(args.streams * directions, data);
    if (dlogits) {
      queue.run<CtcGradient<T>>(elementwise_blocks(frames * args.classes, 1),
                                {data, args.gradient_scale, args.control, pointer<T>(dlogits)});
    }
  });
  queue.run<CtcStats>(1, {args.streams, memory, stats});
}

}  // namespace dgc
