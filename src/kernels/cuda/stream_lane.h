#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "kernels/cuda/cuda_backend.h"

namespace dgc::cuda {

// Another stream of the owner's GPU. A task only queues, so the owner's thread runs it at once; what must come before
// what the GPU learns from events, which become edges of the graph where a step is recorded.
class StreamLane final : public Lane {
 public:
  StreamLane(std::shared_ptr<CudaDevice> owners, Fp32Math math);

  Backend& backend() const override { return *backend_; }
  void post(std::function<void()> task) override;
  void drain() override;

 private:
  std::shared_ptr<CudaDevice> owners_, device_;
  std::unique_ptr<CudaBackend> backend_;
  std::exception_ptr failure_;
};

}  // namespace dgc::cuda
