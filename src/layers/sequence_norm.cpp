#include "layers/sequence_norm.h"

namespace dgc {

SequenceNorm::SequenceNorm(const SequenceNormOptions& options) : options_(options) {
  if (options.channels < 1) throw_user_error("sequence_norm: channels must be positive, not {}", options.channels);
}

Shape SequenceNorm::output_shape(std::span<const Shape> in) const {
  const Shape& x = in[0];
  require_sequences(x, "sequence_norm");
  if (x[x.rank() - 1] != options_.channels) {
    throw_user_error("sequence_norm expects {} channels but its input is {}", options_.channels, x.str());
  }
  return x;
}

SequenceNormArgs SequenceNorm::args(const Shape& x) const {
  return {.sequences = sequence_args(options_.sequences, x),
          .channels = options_.channels,
          .eps = options_.eps,
          .momentum = options_.momentum};
}

size_t SequenceNorm::saved_bytes(Backend&, std::span<const Shape>, DType) const {
  return 2 * float_bytes(options_.channels);
}

void SequenceNorm::forward(const ForwardArgs& f) const {
  const SequenceNormArgs a = args(f.x[0].shape);
  const ConstView lengths = sequence_lengths(f.run, a.sequences);
  if (f.run.training) {
    f.backend.sequence_norm_forward(a, lengths, f.x[0], f.params[0], f.params[1], f.buffers[0], f.buffers[1], f.y,
                                    f.saved);
    return;
  }
  const BatchNormArgs all{.rows = f.y.numel() / a.channels, .channels = a.channels, .eps = a.eps};
  f.backend.batch_norm_inference(all, f.x[0], {}, f.params[0], f.params[1], f.buffers[0], f.buffers[1], f.y);
  f.backend.sequence_mask(a.sequences, lengths, f.y, f.y);
}

void SequenceNorm::backward(const BackwardArgs& b) const {
  const SequenceNormArgs a = args(b.x[0].shape);
  b.backend.sequence_norm_backward(a, sequence_lengths(b.run, a.sequences), b.x[0], b.params[0], b.saved, b.dy, b.dx[0],
                                   b.dparams[0], b.dparams[1]);
}

}  // namespace dgc
