#include "kernels/cuda/queue.h"
#include "kernels/cuda/sequence_norm.cuh"

namespace dgc {

using cuda::Queue;

void CudaBackend::sequence_norm_forward(const SequenceNormArgs& args, ConstView lengths, ConstView x, ConstView scale,
                                        ConstView shift, View running_mean, View running_var, View y, View saved) {
  Queue queue(*this);
  cuda::sequence_norm_forward(queue, args, lengths, x, scale, shift, running_mean, running_var, y, saved);
}

void CudaBackend::sequence_norm_backward(const SequenceNormArgs& args, ConstView lengths, ConstView x, ConstView scale,
                                         ConstView saved, ConstView dy, View dx, View dscale, View dshift) {
  Queue queue(*this);
  cuda::sequence_norm_backward(queue, args, lengths, x, scale, saved, dy, dx, dscale, dshift);
}

}  // namespace dgc
