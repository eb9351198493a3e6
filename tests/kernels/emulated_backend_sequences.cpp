#include "kernels/cuda/ctc.cuh"
#include "kernels/cuda/sequence_norm.cuh"
#include "tests/kernels/emulated_backend.h"

namespace dgc {

void EmulatedBackend::sequence_mask(const SequenceArgs& args, ConstView lengths, ConstView x, View y) {
  cuda::sequence_mask(queue_, args, lengths, x, y);
}

void EmulatedBackend::sequence_reverse(const SequenceArgs& args, ConstView lengths, ConstView x, View y) {
  cuda::sequence_reverse(queue_, args, lengths, x, y);
}

void EmulatedBackend::sequence_norm_forward(const SequenceNormArgs& args, ConstView lengths, ConstView x,
                                            ConstView scale, ConstView shift, View running_mean, View running_var,
                                            View y, View saved) {
  cuda::sequence_norm_forward(queue_, args, lengths, x, scale, shift, running_mean, running_var, y, saved);
}

void EmulatedBackend::sequence_norm_backward(const SequenceNormArgs& args, ConstView lengths, ConstView x,
                                             ConstView scale, ConstView saved, ConstView dy, View dx, View dscale,
                                             View dshift) {
  cuda::sequence_norm_backward(queue_, args, lengths, x, scale, saved, dy, dx, dscale, dshift);
}

void EmulatedBackend::lookahead_forward(const LookaheadArgs& args, ConstView x, ConstView w, View y) {
  cuda::lookahead_forward(queue_, args, x, w, y);
}

void EmulatedBackend::lookahead_backward(const LookaheadArgs& args, ConstView x, ConstView w, ConstView dy, View dx,
                                         View dw) {
  cuda::lookahead_backward(queue_, args, x, w, dy, dx, dw);
}

void EmulatedBackend::transpose(const TransposeArgs& args, ConstView x, View y) { cuda::swap_axes(queue_, args, x, y); }

void EmulatedBackend::ctc_loss(const CtcArgs& args, ConstView logits, ConstView lengths, ConstView labels, View dlogits,
                               double* stats) {
  cuda::ctc_loss(queue_, args, logits, lengths, labels, dlogits, stats);
}

}  // namespace dgc
