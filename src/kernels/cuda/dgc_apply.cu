#include "kernels/cuda/dgc_apply.cuh"
#include "kernels/cuda/dgc_scatter.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::dgc_apply(const DgcApplyArgs& args) {
  if (dgc_ == nullptr) dgc_ = std::make_shared<cuda::DgcScratch>(device_);
  cuda::Queue queue(*this);
  cuda::dgc_apply(queue, *dgc_, args);
}

void CudaBackend::dgc_scatter(const DgcScatterArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_scatter(queue, args);
}

void CudaBackend::dgc_step(const DgcStepArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_step(queue, args);
}

}  // namespace dgc
