// The forward-backward algorithm of Graves et al. 2006, with logarithms of probabilities. With labels l, the states of
// a stream are blank, l1, blank, l2, ... blank. A path starts in one of the first two states and ends in one of the
// last two. In each step it stays, goes on by one state, or skips a blank between two labels that differ. The largest
// number of each step is subtracted from the step's numbers and added up in double, so that the probability of a long
// path keeps fp32's digits.
#include <algorithm>
#include <cmath>

#include "kernels/carver.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/sequence.h"

namespace dgc {
namespace {

constexpr float kNever = -INFINITY;

float log_add(float a, float b) {
  const float top = a < b ? b : a, low = a < b ? a : b;
  return low == kNever ? top : top + std::log1p(std::exp(low - top));
}

// One utterance and its memory.
struct Utterance {
  const CtcArgs& args;
  const float* logits;    // of the first step; the next step's logits lie `stride` behind
  const int32_t* labels;  // the number of labels, then the labels
  int64_t steps;
  float* norms;     // [steps]: log of the sum of exp of a step's logits
  float* occupied;  // [rows, states]: a row for each step, or two by turns where the gradient is not wanted
  int64_t rows;
  float* now;     // [2, states]
  double* taken;  // [steps]: the sum of what was subtracted from alpha's rows

  int64_t stride() const { return args.streams * args.classes; }
  int64_t count() const { return labels[0]; }
  int64_t states() const { return 2 * count() + 1; }
  float* occupied_at(int64_t t) const { return occupied + t % rows * states(); }
  int32_t label(int64_t state) const { return state % 2 == 0 ? 0 : labels[1 + state / 2]; }
  bool may_skip_to(int64_t state) const { return state % 2 == 1 && state >= 3 && label(state) != label(state - 2); }
  float log_probability(int64_t t, int64_t state) const { return logits[t * stride() + label(state)] - norms[t]; }
};

bool fits(const Utterance& u) {
  int64_t needed = u.count();
  for (int64_t i = 2; i <= u.count(); ++i) needed += u.labels[i] == u.labels[i - 1];
  return needed <= u.steps;
}

void find_norms(const Utterance& u) {
  for (int64_t t = 0; t < u.steps; ++t) {
    const float* const x = u.logits + t * u.stride();
    const float top = *std::max_element(x, x + u.args.classes);
    float sum = 0;
    for (int64_t c = 0; c < u.args.classes; ++c) sum += std::exp(x[c] - top);
    u.norms[t] = top + std::log(sum);
  }
}

// Subtracts the largest element from a row and returns that element.
double take_largest(float* row, int64_t n) {
  const float top = *std::max_element(row, row + n);
  if (top == kNever) return 0;
  for (int64_t s = 0; s < n; ++s) row[s] -= top;
  return top;
}

// Sets occupied_at(t)[s] to the log of the probability of all beginnings of paths that are in state s at step t, less
// taken[t]. Returns the log of the probability of all paths.
double forward(const Utterance& u) {
  const int64_t states = u.states();
  double taken = 0;
  for (int64_t t = 0; t < u.steps; ++t) {
    float* const row = u.occupied_at(t);
    const float* const before = t == 0 ? nullptr : u.occupied_at(t - 1);
    std::fill_n(row, states, kNever);
    // The states that a path can have reached and from which it can still end.
    const int64_t first = std::max<int64_t>(0, states - 2 * (u.steps - t)), end = std::min(states, 2 * (t + 1));
    for (int64_t s = first; s < end; ++s) {
      float from = t == 0 ? 0.f : before[s];
      if (t > 0 && s >= 1) from = log_add(from, before[s - 1]);
      if (t > 0 && u.may_skip_to(s)) from = log_add(from, before[s - 2]);
      row[s] = from + u.log_probability(t, s);
    }
    taken += take_largest(row, states);
    u.taken[t] = taken;
  }
  const float* const last = u.occupied_at(u.steps - 1);
  return taken + (states == 1 ? last[0] : log_add(last[states - 1], last[states - 2]));
}

// Turns occupied_at(t)[s] into the share of all paths that are in state s at step t.
void backward(const Utterance& u, double total) {
  const int64_t states = u.states();
  float *next = u.now, *row = u.now + states;
  double taken = 0;
  for (int64_t t = u.steps; t-- > 0;) {
    std::fill_n(row, states, kNever);
    for (int64_t s = 0; s < states; ++s) {
      if (t == u.steps - 1) {
        row[s] = s >= states - 2 ? 0.f : kNever;
        continue;
      }
      float to = next[s] + u.log_probability(t + 1, s);
      if (s + 1 < states) to = log_add(to, next[s + 1] + u.log_probability(t + 1, s + 1));
      if (s + 2 < states && u.may_skip_to(s + 2)) to = log_add(to, next[s + 2] + u.log_probability(t + 1, s + 2));
      row[s] = to;
    }
    taken += take_largest(row, states);
    float* const share = u.occupied_at(t);
    const auto out = static_cast<float>(u.taken[t] + taken - total);
    for (int64_t s = 0; s < states; ++s) share[s] = std::exp(share[s] + row[s] + out);
    std::swap(next, row);
  }
}

// Writes (softmax - shares) * scale, in fp32.
void write_gradient(const Utterance& u, float scale, float* d) {
  const int64_t states = u.states();
  for (int64_t t = 0; t < u.steps; ++t, d += u.stride()) {
    const float *const x = u.logits + t * u.stride(), *const share = u.occupied_at(t);
    for (int64_t c = 0; c < u.args.classes; ++c) d[c] = std::exp(x[c] - u.norms[t]);
    for (int64_t s = 0; s < states; ++s) d[u.label(s)] -= share[s];
    for (int64_t c = 0; c < u.args.classes; ++c) d[c] *= scale;
  }
}

void check_labels(const CtcArgs& a, const int32_t* row) {
  DGC_CHECK(row[0] >= 0 && row[0] <= a.most_labels, "more labels than a row of them has");
  for (int64_t i = 1; i <= row[0]; ++i) {
    DGC_CHECK(row[i] > 0 && row[i] < a.classes, "a label that is no class, or the blank");
  }
}

struct Outcome {
  double loss = 0, counted = 0, left_out = 0;
};

Outcome run(const Utterance& u, float scale, float* d) {
  if (!fits(u)) return {.left_out = 1};
  find_norms(u);
  const double total = forward(u);
  // A NaN or +infinity must reach the loss and the gradient, so that the step is skipped and reported.
  const bool finite = std::all_of(u.norms, u.norms + u.steps, [](float n) { return std::isfinite(n); });
  if (d != nullptr) {
    backward(u, total);
    write_gradient(u, finite ? scale : NAN, d);
  }
  return {.loss = finite ? -total : NAN, .counted = 1};
}

// The memory of each stream.
struct OwnMemory {
  OwnMemory(const CtcArgs& a, int64_t rows, Carver memory)
      : outcome(memory.take<Outcome>(1)),
        norms(memory.take<float>(a.steps)),
        occupied(memory.take<float>(rows * (2 * a.most_labels + 1))),
        now(memory.take<float>(2 * (2 * a.most_labels + 1))),
        taken(memory.take<double>(a.steps)),
        bytes(memory.bytes()) {}
  Outcome* outcome;
  float *norms, *occupied, *now;
  double* taken;
  size_t bytes;
};

}  // namespace

void CpuBackend::ctc_loss(const CtcArgs& a, ConstView logits, ConstView lengths, ConstView labels, View dlogits,
                          double* stats) {
  const SequenceArgs sequences{
      .steps = a.steps, .streams = a.streams, .width = a.classes, .frames_per_step = a.frames_per_step};
  const int64_t rows = dlogits ? a.steps : 2;
  const size_t each = OwnMemory(a, rows, Carver()).bytes;
  std::byte* const memory = scratch(static_cast<size_t>(a.streams) * each);
  const float scale = a.gradient_scale * (a.control == nullptr ? 1.f : a.control->loss_scale);
  for (int64_t stream = 0; stream < a.streams; ++stream) check_labels(a, labels.i32() + stream * (1 + a.most_labels));
  if (dlogits) std::fill_n(dlogits.f32(), dlogits.numel(), 0.f);

  const auto own = [&](int64_t stream) {
    return OwnMemory(a, rows, Carver(memory + static_cast<size_t>(stream) * each));
  };
  for_chunks(a.streams, 1, [&](int64_t stream, int64_t) {
    const OwnMemory mine = own(stream);
    *mine.outcome = {};
    const int64_t steps = valid_steps(sequences, lengths.i32()[stream]);
    if (steps == 0) return;
    const Utterance utterance{.args = a,
                              .logits = logits.f32() + stream * a.classes,
                              .labels = labels.i32() + stream * (1 + a.most_labels),
                              .steps = steps,
                              .norms = mine.norms,
                              .occupied = mine.occupied,
                              .rows = rows,
                              .now = mine.now,
                              .taken = mine.taken};
    *mine.outcome = run(utterance, scale, dlogits ? dlogits.f32() + stream * a.classes : nullptr);
  });
  for (int i = 0; i < 3; ++i) stats[i] = 0;
  for (int64_t stream = 0; stream < a.streams; ++stream) {
    const Outcome* const outcome = own(stream).outcome;
    stats[0] += outcome->loss;
    stats[1] += outcome->counted;
    stats[2] += outcome->left_out;
  }
}

}  // namespace dgc
