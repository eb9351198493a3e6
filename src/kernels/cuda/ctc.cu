#include "kernels/cuda/ctc.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::ctc_loss(const CtcArgs& args, ConstView logits, ConstView lengths, ConstView labels, View dlogits,
                           double* stats) {
  cuda::Queue queue(*this);
  cuda::ctc_loss(queue, args, logits, lengths, labels, dlogits, stats);
}

}  // namespace dgc
