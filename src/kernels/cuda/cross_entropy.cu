#include "kernels/cuda/cross_entropy.cuh"

#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::softmax_cross_entropy(const CrossEntropyArgs& args, ConstView logits, ConstView labels, View dlogits,
                                        double* stats) {
  cuda::Queue queue(*this);
  cuda::softmax_cross_entropy(queue, args, logits, labels, dlogits, stats);
}

}  // namespace dgc
