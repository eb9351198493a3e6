#include "kernels/cuda/dgc_deal.cuh"
#include "kernels/cuda/queue.h"

namespace dgc {

void CudaBackend::dgc_deal(const DgcDealArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_deal(queue, args);
}

void CudaBackend::dgc_sum_dealt(const DgcSumDealtArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_sum_dealt(queue, args);
}

void CudaBackend::dgc_undeal(const DgcUndealArgs& args) {
  if (dgc_ == nullptr) dgc_ = std::make_shared<cuda::DgcScratch>(device_);
  cuda::Queue queue(*this);
  cuda::dgc_undeal(queue, *dgc_, args);
}

void CudaBackend::dgc_settle(const DgcSettleArgs& args) {
  cuda::Queue queue(*this);
  cuda::dgc_settle(queue, args);
}

}  // namespace dgc
