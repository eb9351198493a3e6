#include "kernels/cuda/dgc_compress.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::dgc_compress(const DgcCompressArgs& args) {
  if (dgc_ == nullptr) dgc_ = std::make_shared<cuda::DgcScratch>(device_);
  cuda::Queue queue(*this);
  cuda::dgc_compress(queue, *dgc_, args);
}

}  // namespace dgc
