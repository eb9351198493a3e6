#include "kernels/cuda/dgc_decode.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::dgc_decode(const DgcDecodeArgs& args) {
  if (dgc_ == nullptr) dgc_ = std::make_shared<cuda::DgcScratch>(device_);
  cuda::Queue queue(*this);
  cuda::dgc_decode(queue, *dgc_, args);
}

}  // namespace dgc
