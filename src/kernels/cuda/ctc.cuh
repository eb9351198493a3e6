// CTC loss and gradient in four launches: the norm of each step's logits (a thread each), then all paths of a stream (a
// block each, step after step, forward and backward), then the gradient (a thread per logit), then the sums over
// streams. States and arithmetic are those of kernels/cpu/ctc.cpp: fp32 in the logarithm, with each step's largest
// taken out and added up in double. Sums run in a fixed order. A logit that is not finite, or a label that is no class,
// makes the loss and the stream's gradient NaN, so that the step is skipped and reported: the host cannot look without
// waiting.
#pragma once

#include "kernels/cuda/sequence.cuh"

namespace dgc::cuda {

// What becomes of a stream.
enum CtcKind : int { kCtcAbsent, kCtcCounted, kCtcLeftOut, kCtcBroken };

struct CtcMemory {
  double* taken;    // [streams, steps]
  double* losses;   // [streams]
  float* norms;     // [steps, streams]
  float* occupied;  // [streams, steps, states]: alpha, then the share of all paths
  float* rows;      // [streams, 2, states]
  int* kinds;       // [streams]
};

template <typename T>
struct CtcData {
  SequenceArgs sequences;  // width: classes
  int64_t most_labels;
  const T* logits;
  const int32_t* lengths;
  const int32_t* labels;
  CtcMemory memory;

  __device__ int64_t most_states() const { return 2 * most_labels + 1; }
  __device__ const int32_t* labels_of(int64_t stream) const { return labels + stream * (1 + most_labels); }
};

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

__device__ inline float log_add(float a, float b) {
  const float top = a < b ? b : a, low = a < b ? a : b;
  return low == -INFINITY ? top : top + log1pf(expf(low - top));
}

template <typename T>
struct CtcPaths {
  static constexpr const char* kName = "ctc_paths";
  static constexpr int kBlock = 128;
  static constexpr int kWarps = kBlock / 32;
  using Args = CtcData<T>;
  struct Shared {
    float tops[kWarps];
    int kind;
  };

  // One stream.
  struct Paths {
    const Args& a;
    int64_t stream, steps;
    const int32_t* labels;

    __device__ int64_t states() const { return 2 * int64_t{labels[0]} + 1; }
    __device__ int label(int64_t state) const { return state % 2 == 0 ? 0 : labels[1 + state / 2]; }
    __device__ bool may_skip_to(int64_t state) const {
      return state % 2 == 1 && state >= 3 && label(state) != label(state - 2);
    }
    __device__ float log_probability(int64_t t, int64_t state) const {
      const int64_t row = t * a.sequences.streams + stream;
      return to_float(a.logits[row * a.sequences.width + label(state)]) - a.memory.norms[row];
    }
    __device__ float* occupied(int64_t t) const {
      return a.memory.occupied + (stream * a.sequences.steps + t) * a.most_states();
    }
    __device__ int kind() const {
      if (steps == 0) return kCtcAbsent;
      if (labels[0] < 0 || labels[0] > a.most_labels) return kCtcBroken;
      int64_t needed = labels[0];
      for (int64_t i = 1; i <= labels[0]; ++i) {
        if (labels[i] <= 0 || labels[i] >= a.sequences.width) return kCtcBroken;
        needed += i > 1 && labels[i] == labels[i - 1];
      }
      return needed <= steps ? kCtcCounted : kCtcLeftOut;
    }
  };

  // The largest over the block, for all threads. Between two calls there must be a barrier.
  __device__ static float block_top(Shared& s, float top) {
    for (int lanes = 16; lanes >= 1; lanes /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, top, lanes);
      top = other > top ? other : top;
    }
    if (threadIdx.x % 32 == 0) s.tops[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < kWarps; ++w) top = s.tops[w] > top ? s.tops[w] : top;
    return top;
  }

  // Takes the largest out of a row, of which each thread has written every kBlock-th, and returns it.
  __device__ static float take_largest(Shared& s, float* row, int64_t states, float own_top) {
    const float top = block_top(s, own_top);
    if (top == -INFINITY) return 0;
    for (int64_t i = threadIdx.x; i < states; i += kBlock) row[i] -= top;
    return top;
  }

  __device__ static double forward(const Paths& p, Shared& shared) {
    const int64_t states = p.states();
    double taken = 0;
    for (int64_t t = 0; t < p.steps; ++t) {
      float* const row = p.occupied(t);
      const float* const before = t == 0 ? row : p.occupied(t - 1);
      const int64_t first = states - 2 * (p.steps - t), end = 2 * (t + 1);
      float top = -INFINITY;
      for (int64_t s = threadIdx.x; s < states; s += kBlock) {
        float here = -INFINITY;
        if (s >= first && s < end) {
          float from = t == 0 ? 0.f : before[s];
          if (t > 0 && s >= 1) from = log_add(from, before[s - 1]);
          if (t > 0 && p.may_skip_to(s)) from = log_add(from, before[s - 2]);
          here = from + p.log_probability(t, s);
        }
        row[s] = here;
        top = here > top ? here : top;
      }
      taken += static_cast<double>(take_largest(shared, row, states, top));
      if (threadIdx.x == 0) p.a.memory.taken[p.stream * p.a.sequences.steps + t] = taken;
      __syncthreads();
    }
    const float* const last = p.occupied(p.steps - 1);
    const float ends = states == 1 ? last[0] : log_add(last[states - 1], last[states - 2]);
    return taken + static_cast<double>(ends);
  }

  __device__ static void backward(const Paths& p, Shared& shared, double total) {
    const int64_t states = p.states();
    float* next = p.a.memory.rows + p.stream * 2 * p.a.most_states();
    float* row = next + p.a.most_states();
    double taken = 0;
    for (int64_t t = p.steps - 1; t >= 0; --t) {
      float top = -INFINITY;
      for (int64_t s = threadIdx.x; s < states; s += kBlock) {
        float to = s >= states - 2 ? 0.f : -INFINITY;
        if (t < p.steps - 1) {
          to = next[s] + p.log_probability(t + 1, s);
          if (s + 1 < states) to = log_add(to, next[s + 1] + p.log_probability(t + 1, s + 1));
          if (s + 2 < states && p.may_skip_to(s + 2)) {
            to = log_add(to, next[s + 2] + p.log_probability(t + 1, s + 2));
          }
        }
        row[s] = to;
        top = to > top ? to : top;
      }
      taken += static_cast<double>(take_largest(shared, row, states, top));
      float* const share = p.occupied(t);
      const double before = p.a.memory.taken[p.stream * p.a.sequences.steps + t];
      const auto out = static_cast<float>(before + taken - total);
      for (int64_t s = threadIdx.x; s < states; s += kBlock) share[s] = expf(share[s] + row[s] + out);
      __syncthreads();
      float* const swapped = next;
      next = row;
      row = swapped;
    }
  }

  // Whether all of the stream's norms are: a logit that is not shows there.
  __device__ static bool all_finite(const Paths& p, Shared& shared) {
    float strange = 0;
    for (int64_t t = threadIdx.x; t < p.steps; t += kBlock) {
      const float norm = p.a.memory.norms[t * p.a.sequences.streams + p.stream];
      if (!(norm > -INFINITY && norm < INFINITY)) strange = 1;
    }
    strange = block_top(shared, strange);
    __syncthreads();
    return strange == 0;
  }

  __device__ static void run(const Args& a, Shared& shared) {
    const int64_t stream = blockIdx.x;
    const Paths p{a, stream, valid_steps(a.sequences, a.lengths[stream]), a.labels_of(stream)};
    if (threadIdx.x == 0) shared.kind = p.kind();
    __syncthreads();
    int kind = shared.kind;
    double total = 0;
    if (kind == kCtcCounted) {
      if (all_finite(p, shared)) {
        total = forward(p, shared);
        backward(p, shared, total);
      } else {
        kind = kCtcBroken;
      }
    }
    if (threadIdx.x != 0) return;
    a.memory.kinds[stream] = kind;
    a.memory.losses[stream] = kind == kCtcBroken ? static_cast<double>(NAN) : -total;
  }
};

template <typename T>
struct CtcGradient {
  static constexpr const char* kName = "ctc_gradient";
  static constexpr int kBlock = kElementwiseBlock;
  struct Args {
    CtcData<T> data;
    float gradient_scale;
    const StepControl* control;  // may be null
    T* dlogits;
  };
  using Shared = NoShared;

  __device__ static float gradient(const CtcData<T>& a, int64_t frame, int64_t c, float scale) {
    const FramePlace at = frame_place(a.sequences, frame);
    const int kind = a.memory.kinds[at.stream];
    if (at.step >= valid_steps(a.sequences, a.lengths[at.stream])) return 0;
    if (kind == kCtcBroken) return NAN;
    if (kind != kCtcCounted) return 0;
    const int32_t* const labels = a.labels_of(at.stream);
    const float* const share = a.memory.occupied + (at.stream * a.sequences.steps + at.step) * a.most_states();
    float d = expf(to_float(a.logits[frame * a.sequences.width + c]) - a.memory.norms[frame]);
    for (int64_t i = 0; i <= labels[0]; ++i) {
      if (c == 0) d -= share[2 * i];
      if (c != 0 && i > 0 && labels[i] == c) d -= share[2 * i - 1];
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

template <typename Queue>
CtcMemory ctc_memory(Queue& queue, const CtcArgs& args) {
  const auto frames = static_cast<size_t>(args.steps * args.streams), streams = static_cast<size_t>(args.streams);
  const auto states = static_cast<size_t>(2 * args.most_labels + 1);
  const size_t doubles = frames + streams, floats = frames + frames * states + 2 * streams * states;
  std::byte* const memory = queue.scratch(doubles * sizeof(double) + floats * sizeof(float) + streams * sizeof(int));
  auto* const taken = reinterpret_cast<double*>(memory);
  auto* const norms = reinterpret_cast<float*>(taken + doubles);
  float *const occupied = norms + frames, *const rows = occupied + frames * states;
  return {taken, taken + frames, norms, occupied, rows, reinterpret_cast<int*>(norms + floats)};
}

template <typename Queue>
void ctc_loss(Queue& queue, const CtcArgs& args, ConstView logits, ConstView lengths, ConstView labels, View dlogits,
              double* stats) {
  const CtcMemory memory = ctc_memory(queue, args);
  const SequenceArgs sequences{.order = SequenceOrder::steps_first,
                               .steps = args.steps,
                               .streams = args.streams,
                               .width = args.classes,
                               .frames_per_step = args.frames_per_step};
  const int64_t frames = args.steps * args.streams;
  dispatch(logits.dtype, [&]<typename T>() {
    const CtcData<T> data{sequences, args.most_labels, pointer<T>(logits), lengths.i32(), labels.i32(), memory};
    constexpr int64_t kRows = CtcNorms<T>::kBlock;
    queue.template run<CtcNorms<T>>((frames + kRows - 1) / kRows, data);
    queue.template run<CtcPaths<T>>(args.streams, data);
    if (dlogits) {
      queue.template run<CtcGradient<T>>(elementwise_blocks(frames * args.classes, 1),
                                         {data, args.gradient_scale, args.control, pointer<T>(dlogits)});
    }
  });
  queue.template run<CtcStats>(1, {args.streams, memory, stats});
}

}  // namespace dgc::cuda
