#include "kernels/cuda/dgc_dense.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::dgc_pack(const DgcPackArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_pack(queue, args);
}

}  // namespace dgc
