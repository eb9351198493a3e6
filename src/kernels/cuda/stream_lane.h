#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "kernels/cuda/cuda_backend.h"

namespace dgc::cuda {

// A lane on another stream of the owner's GPU. A task only queues work, so the owner's thread calls it at once. Events
// make one stream wait for the other; where a step is recorded, they become edges of the graph.
class StreamLane final : public Lane {
 public:
  // `device` is the owner's GPU with the lane's stream.
  StreamLane(const CudaBackend& owner, std::shared_ptr<CudaDevice> owners, std::shared_ptr<CudaDevice> device);

  Backend& backend() const override { return *backend_; }
  void post(std::function<void()> task) override;
  void drain() override;

 private:
  std::shared_ptr<CudaDevice> owners_, device_;
  std::unique_ptr<CudaBackend> backend_;
  std::exception_ptr failure_;
};

}  // namespace dgc::cuda
