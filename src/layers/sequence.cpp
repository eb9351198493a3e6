#include "layers/sequence.h"

namespace dgc {

SequenceArgs sequence_args(const SequenceOptions& options, const Shape& x) {
  const bool steps_first = options.order == SequenceOrder::steps_first;
  return {.order = options.order,
          .steps = x[steps_first ? 0 : 1],
          .streams = x[steps_first ? 1 : 0],
          .width = x.numel() / (x[0] * x[1]),
          .frames_per_step = options.frames_per_step};
}

ConstView sequence_lengths(const RunContext& run, const SequenceArgs& args) {
  DGC_CHECK(run.lengths && run.lengths.numel() == args.streams, "a length for each stream is missing");
  return run.lengths;
}

void mask_sequences(Backend& backend, const RunContext& run, const SequenceOptions& options, ConstView x, View y) {
  const SequenceArgs args = sequence_args(options, y.shape);
  backend.sequence_mask(args, sequence_lengths(run, args), x, y);
}

void require_sequences(const Shape& x, const char* layer) {
  if (x.rank() < 3) throw_user_error("{} expects [steps, streams, ...] but its input is {}", layer, x.str());
}

Shape SequenceMask::output_shape(std::span<const Shape> in) const {
  require_sequences(in[0], "sequence_mask");
  return in[0];
}

void SequenceMask::forward(const ForwardArgs& f) const { mask_sequences(f.backend, f.run, options_, f.x[0], f.y); }

void SequenceMask::backward(const BackwardArgs& b) const {
  if (b.dx[0]) mask_sequences(b.backend, b.run, options_, b.dy, b.dx[0]);
}

Shape SequenceReverse::output_shape(std::span<const Shape> in) const {
  require_sequences(in[0], "sequence_reverse");
  return in[0];
}

void SequenceReverse::forward(const ForwardArgs& f) const {
  const SequenceArgs args = sequence_args(options_, f.x[0].shape);
  f.backend.sequence_reverse(args, sequence_lengths(f.run, args), f.x[0], f.y);
}

void SequenceReverse::backward(const BackwardArgs& b) const {
  const SequenceArgs args = sequence_args(options_, b.dy.shape);
  if (b.dx[0]) b.backend.sequence_reverse(args, sequence_lengths(b.run, args), b.dy, b.dx[0]);
}

}  // namespace dgc
