#include "kernels/cuda/stream_lane.h"

#include <utility>

namespace dgc::cuda {

// A cooperative launch waits until all of its blocks find room at once. As many as the GPU holds would wait for the
// owner's kernels to leave it empty, and then keep the next ones away: nothing would run beside anything. One block per
// multiprocessor finds room wherever a kernel of the owner's leaves some, and still draws on the whole GPU's bandwidth.
// It never waits for ever: what is on the GPU ends by itself, but for NCCL's kernels, of which one at most is there,
// and what it waits for is the other ranks' compression, not this one's. The best number has yet to be measured.
StreamLane::StreamLane(std::shared_ptr<CudaDevice> owners, Fp32Math math)
    : owners_(std::move(owners)),
      device_(owners_->make_beside()),
      backend_(std::make_unique<CudaBackend>(device_, math, device_->multiprocessors())) {}

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
