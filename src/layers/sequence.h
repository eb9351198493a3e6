#pragma once

#include "layers/layer.h"

namespace dgc {

// Sequences as a layer sees them: x is [steps, streams, ...] or [streams, steps, ...], and a step stands for
// frames_per_step frames of the network's input.
struct SequenceOptions {
  int64_t frames_per_step = 1;
  SequenceOrder order = SequenceOrder::steps_first;
};

SequenceArgs sequence_args(const SequenceOptions&, const Shape& x);
// The run's lengths. Throws InternalError unless there is one for each stream.
ConstView sequence_lengths(const RunContext&, const SequenceArgs&);
// y = x, but 0 behind each stream's end; y may be x.
void mask_sequences(Backend&, const RunContext&, const SequenceOptions&, ConstView x, View y);
// Throws UserError that names `layer` and the shape unless x has steps, streams and more.
void require_sequences(const Shape& x, const char* layer);

// y = x, but 0 behind each stream's end.
class SequenceMask final : public Layer {
 public:
  explicit SequenceMask(const SequenceOptions& options) : options_(options) {}

  Shape output_shape(std::span<const Shape> in) const override;
  bool gradient_in_place(int) const override { return true; }
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  SequenceOptions options_;
};

// Reverses the order of each stream's valid steps; y is 0 behind them.
class SequenceReverse final : public Layer {
 public:
  explicit SequenceReverse(const SequenceOptions& options) : options_(options) {}

  Shape output_shape(std::span<const Shape> in) const override;
  void forward(const ForwardArgs&) const override;
  void backward(const BackwardArgs&) const override;

 private:
  SequenceOptions options_;
};

}  // namespace dgc
