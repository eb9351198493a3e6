#pragma once

#include <compare>
#include <cstdint>

#include "kernels/step_control.h"
#include "tensor/view.h"

// What ops take (backend.h): sizes and options by name.
namespace dgc {

struct Conv2dArgs {
  int64_t batch = 0, in_h = 0, in_w = 0, in_c = 0, out_c = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, groups = 1;
  int64_t out_h() const { return (in_h + 2 * pad_h - kernel_h) / stride_h + 1; }
  int64_t out_w() const { return (in_w + 2 * pad_w - kernel_w) / stride_w + 1; }
  auto operator<=>(const Conv2dArgs&) const = default;
};

// y = x W^T + b with x [batch, in], W [out, in], b [out], y [batch, out].
struct LinearArgs {
  int64_t batch = 0, in = 0, out = 0;
  auto operator<=>(const LinearArgs&) const = default;
};

// x seen as [rows, channels] (an NHWC image has batch * h * w rows).
// y = relu?(scale * (x - mean) / sqrt(var + eps) + shift + residual?)
struct BatchNormArgs {
  int64_t rows = 0, channels = 0;
  float eps = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * batch, as in PyTorch
  bool relu = false;
  bool residual = false;
  auto operator<=>(const BatchNormArgs&) const = default;
};

enum class PoolKind { max, average };  // average counts the padding in its divisor, as PyTorch does by default

struct PoolArgs {
  PoolKind kind = PoolKind::max;
  int64_t batch = 0, in_h = 0, in_w = 0, channels = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int64_t out_h() const { return (in_h + 2 * pad_h - kernel_h) / stride_h + 1; }
  int64_t out_w() const { return (in_w + 2 * pad_w - kernel_w) / stride_w + 1; }
  auto operator<=>(const PoolArgs&) const = default;
};

// Mean over height and width: [batch, spatial, channels] -> [batch, channels].
struct GlobalPoolArgs {
  int64_t batch = 0, spatial = 0, channels = 0;
  auto operator<=>(const GlobalPoolArgs&) const = default;
};

enum class Activation { relu, tanh, sigmoid, clipped_relu };
inline constexpr float kReluClip = 20;  // clipped_relu: min(max(x, 0), 20)

// Inverted dropout: y = x * keep / (1 - p), keep drawn from Philox(seed, stream) at counter
// control->step * per_step + first + i (no control: step 0), so no mask is stored.
struct DropoutArgs {
  int64_t numel = 0;
  float p = 0;
  uint64_t seed = 0, stream = 0, per_step = 0, first = 0;
  const StepControl* control = nullptr;
};

// Local response normalisation across channels (AlexNet; PyTorch's LocalResponseNorm):
// y = x / (k + alpha / size * sum over `size` neighbouring channels of x^2)^beta
struct LrnArgs {
  int64_t batch = 0, in_h = 0, in_w = 0, channels = 0, size = 5;
  float alpha = 1e-4f, beta = 0.75f, k = 1.f;
  auto operator<=>(const LrnArgs&) const = default;
};

// The parameter-free shortcut of He et al. 2015 (option A): every `stride`-th pixel, channels padded with zeros, half
// of them before and half behind. [batch, in_h, in_w, in_c] -> [batch, ceil(in_h / stride), ceil(in_w / stride),
// out_c].
struct ShortcutArgs {
  int64_t batch = 0, in_h = 0, in_w = 0, in_c = 0, out_c = 0, stride = 1;
  int64_t out_h() const { return (in_h + stride - 1) / stride; }
  int64_t out_w() const { return (in_w + stride - 1) / stride; }
};

// [batch, spatial, channels] -> [batch, channels * spatial]: PyTorch's flatten of an NCHW image.
struct FlattenArgs {
  int64_t batch = 0, spatial = 0, channels = 0;
};

struct CrossEntropyArgs {
  int64_t rows = 0, classes = 0;
  float gradient_scale = 1;  // dlogits = gradient_scale * loss_scale * (softmax - one_hot); 1 / rows for the mean
  const StepControl* control = nullptr;  // where the loss scale is; null: 1
  const double* before = nullptr;        // device memory [3]: the statistics start from these; null: from 0
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
  View w_ih, w_hh, b_ih, b_hh;  // none may be null but the biases that there are not
};
// fp32 [batch, hidden]: before the first step, and then after the last. Null: zeros before, and nobody asks after.
struct RnnState {
  View h, c;  // c: only of an lstm
};

// Sequences of unequal lengths side by side, each padded at its end to `steps` steps of `width` elements:
// [steps, streams, width] or [streams, steps, width]. lengths, i32 [streams] on the device, counts frames of the
// network's input, of which a step here takes frames_per_step: stream s has ceil(lengths[s] / frames_per_step) valid
// steps, at most `steps`. Whoever keeps to convolutions with (kernel - 1) / 2 frames of padding needs no other number.
enum class SequenceOrder { steps_first, streams_first };
struct SequenceArgs {
  SequenceOrder order = SequenceOrder::steps_first;
  int64_t steps = 0, streams = 0, width = 0, frames_per_step = 1;
  int64_t frames() const { return steps * streams; }
};

// Batch normalisation over the valid steps alone; a step has width / channels rows of channels. Elsewhere y and dx are
// zero. Without a valid step the running statistics stay as they are.
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

// y[j][i][c][r] = x[i][j][r][c]: x [outer, inner, rows, columns], y [inner, outer, columns, rows].
struct TransposeArgs {
  int64_t outer = 0, inner = 0, rows = 1, columns = 1;
};

// Connectionist temporal classification (Graves et al. 2006). Class 0 is the blank. labels: i32 [streams, 1 +
// most_labels]; a stream's row starts with how many labels it has.
struct CtcArgs {
  int64_t steps = 0, streams = 0, classes = 0, most_labels = 0, frames_per_step = 1;
  float gradient_scale = 1;              // dlogits = gradient_scale * loss_scale * d(sum of losses) / d(logits)
  const StepControl* control = nullptr;  // where the loss scale is; null: 1
};

// Dense momentum SGD on numel elements, PyTorch's definition, every product fused into an explicit fma:
//   d = scale * g + weight_decay * w;  m = momentum * m + d;  w -= lr * (nesterov ? d + momentum * m : m)
struct SgdArgs {
  int64_t numel = 0;
  float momentum = 0, weight_decay = 0;
  bool nesterov = false;
  const float* scale = nullptr;          // device memory
  const StepControl* control = nullptr;  // lr, skip
};

// What a step starts from. begin_step first moves the loss scale on by what the step before did (step_control.h), then
// writes this into the control and the rank's own shares, and zeroes the rest of both but for the fault.
struct StepInput {
  uint64_t step = 0;
  float lr = 0;
  bool stop = false;
};

// scales[i] = 1 / divisor, clipped so that the gradient times its scale has a norm of at most `limit` (PyTorch's
// clip_grad_norm_): scales[i] = min(1, limit / (sqrt(squares[i * stride]) / divisor + 1e-6)) / divisor, where the
// divisor includes the loss scale. In double, rounded once.
struct ClipArgs {
  const double* squares = nullptr;  // device memory
  int64_t stride = 1;
  int64_t count = 0;
  double divisor = 1;
  double limit = 0;  // infinity: no clipping
  const StepControl* control = nullptr;
  float* scales = nullptr;  // device memory [count]
};

// From when to when something was done, by Backend::read_clock.
struct OverlapSpan {
  uint64_t from = 0, to = 0;
  // Nanoseconds of it before `end`.
  constexpr uint64_t until(uint64_t end) const {
    const uint64_t last = end < to ? end : to;
    return last > from ? last - from : 0;
  }
};

struct OverlapTotals {
  uint64_t steps = 0;
  uint64_t nanoseconds = 0;  // of all spans
  uint64_t hidden = 0;       // of them, while nobody waited
};

// Adds the spans of one step to the totals; from waits_from on somebody waited for them. All of it is device memory.
struct OverlapTimeArgs {
  const OverlapSpan* spans = nullptr;
  int64_t count = 0;
  const uint64_t* waits_from = nullptr;
  OverlapTotals* totals = nullptr;
};

}  // namespace dgc
