// The forward-backward algorithm over the states of a stream's labels (ctc.cu). One block goes over the steps from the
// first to the last and another one, where a gradient is wanted, from the last to the first, both at the same time.
#pragma once

#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/sequence_steps.cuh"

namespace dgc::cuda {

// A stream has no steps (absent), or adds to the loss (counted), or has too few steps for its labels (left out), or has
// a label or a norm that is not valid (broken).
enum CtcKind : int { kCtcAbsent, kCtcCounted, kCtcLeftOut, kCtcBroken };

// What one direction finds: for each state of each step the log of the probability of all beginnings of paths that end
// there (from the first step), or of all continuations from there (from the last), less what was taken.
struct CtcSweep {
  float* rows;    // [streams, steps, states]
  double* taken;  // [streams, steps]: the sum of what was subtracted from the rows up to here
};

enum CtcDirection : int { kCtcFromFirst, kCtcFromLast };

struct CtcMemory {
  CtcSweep sweeps[2];  // of each CtcDirection
  double* losses;      // [streams]
  float* norms;        // [steps, streams]
  int* kinds;          // [streams]
};

template <typename T>
struct CtcData {
  SequenceArgs sequences;  // width is the number of classes
  int64_t most_labels;
  int directions;  // 1, from the first step, or 2
  const T* logits;
  const int32_t* lengths;
  const int32_t* labels;
  CtcMemory memory;

  __device__ int64_t most_states() const { return 2 * most_labels + 1; }
  // Where a sweep's numbers of a step begin.
  __device__ int64_t step_of(int64_t stream, int64_t t) const { return stream * sequences.steps + t; }
  __device__ float* row_of(CtcDirection d, int64_t stream, int64_t t) const {
    return memory.sweeps[d].rows + step_of(stream, t) * most_states();
  }
  __device__ const int32_t* labels_of(int64_t stream) const { return labels + stream * (1 + most_labels); }
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
    __device__ float* row(CtcDirection d, int64_t t) const { return a.row_of(d, stream, t); }
    __device__ double& taken(CtcDirection d, int64_t t) const { return a.memory.sweeps[d].taken[a.step_of(stream, t)]; }
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

  // Returns the largest `top` of the block to all threads. There must be a barrier between two calls.
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

  // Subtracts the largest element from a row and returns that element. Each thread has written every kBlock-th element
  // of the row, and own_top is the largest of these.
  __device__ static float take_largest(Shared& s, float* row, int64_t states, float own_top) {
    const float top = block_top(s, own_top);
    if (top == -INFINITY) return 0;
    for (int64_t i = threadIdx.x; i < states; i += kBlock) row[i] -= top;
    return top;
  }

  // Returns the log of the probability of all paths.
  __device__ static double from_first(const Paths& p, Shared& shared) {
    const int64_t states = p.states();
    double taken = 0;
    for (int64_t t = 0; t < p.steps; ++t) {
      float* const row = p.row(kCtcFromFirst, t);
      const float* const before = t == 0 ? row : p.row(kCtcFromFirst, t - 1);
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
      if (threadIdx.x == 0) p.taken(kCtcFromFirst, t) = taken;
      __syncthreads();
    }
    const float* const last = p.row(kCtcFromFirst, p.steps - 1);
    const float ends = states == 1 ? last[0] : log_add(last[states - 1], last[states - 2]);
    return taken + static_cast<double>(ends);
  }

  __device__ static void from_last(const Paths& p, Shared& shared) {
    const int64_t states = p.states();
    double taken = 0;
    for (int64_t t = p.steps - 1; t >= 0; --t) {
      float* const row = p.row(kCtcFromLast, t);
      const float* const next = t == p.steps - 1 ? row : p.row(kCtcFromLast, t + 1);
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
      if (threadIdx.x == 0) p.taken(kCtcFromLast, t) = taken;
      __syncthreads();
    }
  }

  // True if the norms of all of the stream's steps are finite. A logit of NaN or +infinity makes the norm of its step
  // NaN; -infinity is the logit of probability 0.
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
    const int64_t stream = blockIdx.x / a.directions;
    const Paths p{a, stream, valid_steps(a.sequences, a.lengths[stream]), a.labels_of(stream)};
    if (threadIdx.x == 0) shared.kind = p.kind();
    __syncthreads();
    int kind = shared.kind;
    if (kind == kCtcCounted && !all_finite(p, shared)) kind = kCtcBroken;
    if (blockIdx.x % a.directions == kCtcFromLast) {
      if (kind == kCtcCounted) from_last(p, shared);
      return;
    }
    const double total = kind == kCtcCounted ? from_first(p, shared) : 0;
    if (threadIdx.x != 0) return;
    a.memory.kinds[stream] = kind;
    a.memory.losses[stream] = kind == kCtcBroken ? static_cast<double>(NAN) : -total;
  }
};

}  // namespace dgc::cuda
