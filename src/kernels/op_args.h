#pragma once

#include <compare>
#include <cstdint>

#include "kernels/step_control.h"
#include "tensor/view.h"

// The arguments of the ops in backend.h: sizes (in elements) and options by name.
namespace dgc {

// The weights of a convolution: [out, in, taps], where `in` is that of one group, and taps are the filter's pixels.
struct FilterArgs {
  int64_t out = 0, in = 0, taps = 1;
  int64_t numel() const { return out * in * taps; }
  // Whether the weights, rearranged to [out, taps, in] and converted to this type, are the same bytes.
  bool stays_as_it_is(DType type) const { return type == DType::f32 && (in == 1 || taps == 1); }
};
// How many filters one launch on a GPU moves at most: they travel as a parameter of the kernel, which may have 4 KB.
inline constexpr size_t kMostFilters = 64;

// Cross-correlation, as in PyTorch: x [batch, in_h, in_w, in_c], w [out_c, in_c / groups, kernel_h, kernel_w], b
// [out_c], y [batch, out_h, out_w, out_c]. stride and pad are counted in pixels.
struct Conv2dArgs {
  int64_t batch = 0, in_h = 0, in_w = 0, in_c = 0, out_c = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, groups = 1;
  int64_t out_h() const { return (in_h + 2 * pad_h - kernel_h) / stride_h + 1; }
  int64_t out_w() const { return (in_w + 2 * pad_w - kernel_w) / stride_w + 1; }
  FilterArgs filter() const { return {out_c, in_c / groups, kernel_h * kernel_w}; }
  auto operator<=>(const Conv2dArgs&) const = default;
};

// What a pass uses of a convolution's weights. dw is null in a forward pass, and where others look at gradients before
// the pass has ended.
struct FilterUse {
  FilterArgs filter;
  ConstView w;
  View dw = {};
};

// y = x W^T + b with x [batch, in], W [out, in], b [out], y [batch, out].
struct LinearArgs {
  int64_t batch = 0, in = 0, out = 0;
};

// x, residual and y are [rows, channels], where an NHWC image has batch * h * w rows; scale, shift, mean and var are
// [channels].
// y = relu?(scale * (x - mean) / sqrt(var + eps) + shift + residual?)
struct BatchNormArgs {
  int64_t rows = 0, channels = 0;
  float eps = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * batch, as in PyTorch
  bool relu = false;
  bool residual = false;
  size_t saved_bytes() const { return float_bytes(3 * channels); }  // what a forward pass leaves for the backward pass
};

enum class PoolKind { max, average };  // average counts the padding in its divisor, as PyTorch does by default

// x [batch, in_h, in_w, channels], y [batch, out_h, out_w, channels].
struct PoolArgs {
  static constexpr int64_t kMostKernel = 256;  // of a side; a position in the window is stored in 16 bits
  PoolKind kind = PoolKind::max;
  int64_t batch = 0, in_h = 0, in_w = 0, channels = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int64_t out_h() const { return (in_h + 2 * pad_h - kernel_h) / stride_h + 1; }
  int64_t out_w() const { return (in_w + 2 * pad_w - kernel_w) / stride_w + 1; }
  float average_share() const { return 1.f / static_cast<float>(kernel_h * kernel_w); }  // of one place in the window
  // What a forward pass leaves for the backward pass: of a largest value its place in the window.
  size_t saved_bytes() const {
    if (kind == PoolKind::average) return 0;
    return static_cast<size_t>(batch * out_h() * out_w() * channels) * sizeof(uint16_t);
  }
};

// Mean over height and width: [batch, spatial, channels] -> [batch, channels].
struct GlobalPoolArgs {
  int64_t batch = 0, spatial = 0, channels = 0;
};

enum class Activation { relu, tanh, sigmoid, clipped_relu };
inline constexpr float kReluClip = 20;  // clipped_relu: min(max(x, 0), 20)

// Inverted dropout: y[i] = x[i] * keep[i] / (1 - p). keep[i] is 0 with probability p, else 1, by the random number
// control->step * per_step + first + i of Philox(seed, stream), so that no mask is stored. Without control, step is 0.
struct DropoutArgs {
  int64_t numel = 0;
  float p = 0;
  uint64_t seed = 0, stream = 0, per_step = 0, first = 0;
  const StepControl* control = nullptr;
};

// Local response normalisation across channels (AlexNet; PyTorch's LocalResponseNorm):
// y = x / (k + alpha / size * sum over `size` neighbouring channels of x^2)^beta, where x and y are
// [batch, in_h, in_w, channels].
struct LrnArgs {
  static constexpr int64_t kMostSize = 129;  // channels of the largest window; a GPU has shared memory for no more
  int64_t batch = 0, in_h = 0, in_w = 0, channels = 0, size = 5;
  float alpha = 1e-4f, beta = 0.75f, k = 1.f;
};

// The parameter-free shortcut of He et al. 2015 (option A): every `stride`-th pixel, channels padded with zeros, half
// of them before and half behind, of an odd number one more behind. [batch, in_h, in_w, in_c] -> [batch, ceil(in_h /
// stride), ceil(in_w / stride), out_c].
struct ShortcutArgs {
  int64_t batch = 0, in_h = 0, in_w = 0, in_c = 0, out_c = 0, stride = 1;
  int64_t out_h() const { return (in_h + stride - 1) / stride; }
  int64_t out_w() const { return (in_w + stride - 1) / stride; }
};

// Softmax and cross entropy of logits [rows, classes] with i32 labels [rows]; dlogits [rows, classes].
struct CrossEntropyArgs {
  int64_t rows = 0, classes = 0;
  float gradient_scale = 1;  // dlogits = gradient_scale * loss_scale * (softmax - target); 1 / rows for the mean
  const StepControl* control = nullptr;  // holds the loss scale; null: 1
  const double* before = nullptr;        // device memory [3]: what the statistics start from; null: 0
  // target = (1 - smoothing) * one_hot + smoothing / classes, from 0 to below 1 (Szegedy et al., "Rethinking the
  // Inception architecture for computer vision", 2015, section 7)
  float smoothing = 0;
};

// y[r] = table[tokens[r]] with tokens i32 [rows], table [vocabulary, width], y [rows, width].
struct EmbeddingArgs {
  int64_t rows = 0, vocabulary = 0, width = 0;
};

// One recurrent layer in one direction, `steps` time steps of `batch` streams. x [steps, batch, in], y [steps, batch,
// hidden]; gates in PyTorch's order, one block of `hidden` rows after the other. With a = W_ih x_t + b_ih and
// p = W_hh h_{t-1} + b_hh, and s for sigmoid:
//   lstm        i, f, g, o = a + p   c_t = s(f) c_{t-1} + s(i) tanh(g)   y_t = h_t = s(o) tanh(c_t)
//   gru         r, z = s(a + p)      n = tanh(a_n + r * p_n)             y_t = h_t = (1 - z) n + z h_{t-1}
//   tanh, relu  y_t = h_t = tanh or relu of a + p
// (Hochreiter, Schmidhuber 1997 with the forget gate of Gers et al. 2000; Cho et al. 2014 in the form of cuDNN and
// PyTorch, which reset after the recurrent product; Elman 1990.)
enum class RnnCell { lstm, gru, tanh, relu };
struct RnnArgs {
  RnnCell cell = RnnCell::lstm;
  int64_t steps = 0, batch = 0, in = 0, hidden = 0;
  bool biases = true;
  int64_t gates() const { return (cell == RnnCell::lstm ? 4 : cell == RnnCell::gru ? 3 : 1) * hidden; }
  auto operator<=>(const RnnArgs&) const = default;
};
struct RnnWeights {
  ConstView w_ih, w_hh, b_ih, b_hh;  // [gates, in], [gates, hidden], [gates], [gates]; no biases: null
};
struct RnnGradients {
  View w_ih, w_hh, b_ih, b_hh;  // as in RnnWeights; only biases may be null, where the layer has none
};
// fp32 [batch, hidden]. The op reads the state before the first step, and writes the state after the last step in its
// place. With null views the op starts from zeros, and writes no state.
struct RnnState {
  View h, c;  // c belongs to an lstm only
};

// Sequences of unequal lengths side by side, each padded at its end to `steps` steps of `width` elements:
// [steps, streams, width] or [streams, steps, width]. lengths, i32 [streams] on the device, counts frames of the
// network's input, of which a step here takes frames_per_step: stream s has ceil(lengths[s] / frames_per_step) valid
// steps, at most `steps`. This formula holds as long as convolutions over time have (kernel - 1) / 2 frames of padding.
enum class SequenceOrder { steps_first, streams_first };
struct SequenceArgs {
  SequenceOrder order = SequenceOrder::steps_first;
  int64_t steps = 0, streams = 0, width = 0, frames_per_step = 1;
  int64_t frames() const { return steps * streams; }
};

// Batch normalisation over the valid steps alone, where each step has width / channels rows of channels. In steps that
// are not valid, y and dx are zero. If no step is valid, the running statistics do not change.
struct SequenceNormArgs {
  SequenceArgs sequences;
  int64_t channels = 0;
  float eps = 1e-5f;
  float momentum = 0.1f;  // as in BatchNormArgs
  int64_t rows_of_step() const { return sequences.width / channels; }
};

// y[t] = sum over k < context of w[:, k] * x[t + k], channel by channel (the row convolution of Amodei et al. 2016).
// x [steps, streams, channels], zero behind each stream's end; w [channels, context].
struct LookaheadArgs {
  int64_t steps = 0, streams = 0, channels = 0, context = 1;
};

// y[j][i][c][r] = x[i][j][r][c]: x [outer, inner, rows, columns], y [inner, outer, columns, rows]. With an inner of 1,
// rows for pixels and columns for channels, this is PyTorch's flatten of `outer` images.
struct TransposeArgs {
  int64_t outer = 0, inner = 0, rows = 1, columns = 1;
};

// Connectionist temporal classification (Graves et al. 2006) of logits [steps, streams, classes], where class 0 is the
// blank. labels is i32 [streams, 1 + most_labels]: a stream's row holds its number of labels, and then the labels.
// lengths and frames_per_step are those of SequenceArgs.
struct CtcArgs {
  int64_t steps = 0, streams = 0, classes = 0, most_labels = 0, frames_per_step = 1;
  float gradient_scale = 1;              // dlogits = gradient_scale * loss_scale * d(sum of losses) / d(logits)
  const StepControl* control = nullptr;  // holds the loss scale; null: 1
};

// Dense momentum SGD on numel elements, PyTorch's definition. scale * g is rounded on its own; every other product
// is fused into an explicit fma:
//   d = scale * g + weight_decay * w;  m = momentum * m + d;  w -= lr * (nesterov ? d + momentum * m : m)
// Where momentum is 0, m may be null: w -= lr * d.
struct SgdArgs {
  int64_t numel = 0;
  float momentum = 0, weight_decay = 0;
  bool nesterov = false;
  const float* scale = nullptr;          // device memory
  const StepControl* control = nullptr;  // lr, skip
};

// What the host says about a step before it begins. begin_step first updates the loss scale by the outcome of the step
// before (step_control.h). Then it writes these values into the control and into the shares of the rank's own workers,
// sets skip and mean_square to 0, and zeroes the rest of these shares.
struct StepInput {
  uint64_t step = 0;
  float lr = 0;
  bool stop = false;
};

// What begin_step does to the control, on every backend.
constexpr void begin_control(const StepInput& input, StepControl& c) {
  if (c.scale_every > 0 && c.skip != 0) {
    c.loss_scale = c.loss_scale / 2 > 1 ? c.loss_scale / 2 : 1;
    c.good_steps = 1;
  } else if (c.scale_every > 0 && ++c.good_steps > c.scale_every) {
    if (c.loss_scale < kMostLossScale) c.loss_scale *= 2;
    c.good_steps = 1;
  }
  c.step = input.step;
  c.lr = input.lr;
  c.skip = 0;
  c.mean_square = 0;
}

// scales[i] = 1 / divisor, clipped so that the gradient times its scale has a norm of at most `limit` (PyTorch's
// clip_grad_norm_): scales[i] = min(1, limit / (sqrt(squares[i * stride]) / divisor + 1e-6)) / divisor, where the
// divisor includes the loss scale. The op computes in double and rounds once.
struct ClipArgs {
  const double* squares = nullptr;  // device memory
  int64_t stride = 1;
  int64_t count = 0;
  double divisor = 1;
  double limit = 0;  // infinity: no clipping
  const StepControl* control = nullptr;
  float* scales = nullptr;  // device memory [count]

  // One of the scales, of the root of its square.
  constexpr float scale_of(double root) const {
    const double all = divisor * static_cast<double>(control->loss_scale);
    const double share = limit / (root / all + 1e-6);
    return static_cast<float>((share < 1 ? share : 1.0) / all);
  }
};

// When some work began and ended, in nanoseconds of Backend::read_clock.
struct OverlapSpan {
  uint64_t from = 0, to = 0;
  // The nanoseconds of the span that lie before `end`.
  constexpr uint64_t until(uint64_t end) const {
    const uint64_t last = end < to ? end : to;
    return last > from ? last - from : 0;
  }
};

struct OverlapTotals {
  uint64_t steps = 0;
  uint64_t nanoseconds = 0;  // length of all spans
  uint64_t hidden = 0;       // the part of all spans that lies before the step began to wait for their work
};

// Adds the spans of one step to the totals. *waits_from is the time at which the step began to wait for
// the spans' work. All pointers are to device memory.
struct OverlapTimeArgs {
  const OverlapSpan* spans = nullptr;
  int64_t count = 0;
  const uint64_t* waits_from = nullptr;
  OverlapTotals* totals = nullptr;
};

}  // namespace dgc
