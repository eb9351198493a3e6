#include "kernels/cuda/queue.h"
#include "kernels/cuda/sequence.cuh"

namespace dgc {

using cuda::Queue;

void CudaBackend::sequence_mask(const SequenceArgs& args, ConstView lengths, ConstView x, View y) {
  Queue queue(*this);
  cuda::sequence_mask(queue, args, lengths, x, y);
}

void CudaBackend::sequence_reverse(const SequenceArgs& args, ConstView lengths, ConstView x, View y) {
  Queue queue(*this);
  cuda::sequence_reverse(queue, args, lengths, x, y);
}

void CudaBackend::transpose(const TransposeArgs& args, ConstView x, View y) {
  Queue queue(*this);
  cuda::swap_axes(queue, args, x, y);
}

void CudaBackend::lookahead_forward(const LookaheadArgs& args, ConstView x, ConstView w, View y) {
  Queue queue(*this);
  cuda::lookahead_forward(queue, args, x, w, y);
}

void CudaBackend::lookahead_backward(const LookaheadArgs& args, ConstView x, ConstView w, ConstView dy, View dx,
                                     View dw) {
  Queue queue(*this);
  cuda::lookahead_backward(queue, args, x, w, dy, dx, dw);
}

}  // namespace dgc
