#include "kernels/cuda/dgc_encode.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::dgc_encode(const DgcEncodeArgs& args) {
  if (dgc_ == nullptr) dgc_ = std::make_shared<cuda::DgcScratch>(device_);
  cuda::Queue queue(*this);
  cuda::dgc_encode(queue, *dgc_, args);
}

}  // namespace dgc
