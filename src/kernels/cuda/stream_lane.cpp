#include "kernels/cuda/stream_lane.h"

#include <utility>

namespace dgc::cuda {

// A cooperative launch waits until all of its blocks find room at once. A launch of as many blocks as the GPU holds
// would wait until the owner's kernels leave the GPU empty, and would then keep the owner's next kernels away, so that
// nothing would overlap. One block per multiprocessor finds room wherever a kernel of the owner leaves some, and still
// draws on the whole GPU's bandwidth. Such a launch does not wait for ever. The kernels on the GPU end by themselves,
// except for NCCL's. At most one NCCL kernel is on the GPU, and it waits for the compression of the other ranks, not of
// this rank. The best number of blocks has yet to be measured.
StreamLane::StreamLane(const CudaBackend& owner, std::shared_ptr<CudaDevice> owners, std::shared_ptr<CudaDevice> device)
    : owners_(std::move(owners)),
      device_(std::move(device)),
      backend_(std::make_unique<CudaBackend>(owner, device_, device_->multiprocessors())) {}

void StreamLane::post(std::function<void()> task) {
  if (failure_ != nullptr) return;
  device_->follow(*owners_);
  try {
    task();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void StreamLane::drain() {
  owners_->follow(*device_);
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace dgc::cuda
