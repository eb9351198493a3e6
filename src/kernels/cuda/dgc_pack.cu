#include "kernels/cuda/dgc_dense.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::dgc_pack(const DgcPackArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_pack(queue, args);
}

void CudaBackend::dgc_pack_half(const DgcPackHalfArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_pack_half(queue, args);
}

void CudaBackend::dgc_sum_half(const DgcSumHalfArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_sum_half(queue, args);
}

}  // namespace dgc
