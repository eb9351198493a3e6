#include <cuda_runtime.h>

#include "tensor/device_cuda.h"

namespace dgc {
namespace {

class CudaStopwatch final : public Stopwatch {
 public:
  explicit CudaStopwatch(const CudaDevice& device) : device_(device) {
    check_cuda(cudaEventCreate(&start_), "cudaEventCreate");
    check_cuda(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~CudaStopwatch() override {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;

  void start() override { check_cuda(cudaEventRecord(start_, device_.stream()), "cudaEventRecord"); }
  void stop() override { check_cuda(cudaEventRecord(stop_, device_.stream()), "cudaEventRecord"); }
  double milliseconds() override {
    float between = 0;
    check_cuda(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    check_cuda(cudaEventElapsedTime(&between, start_, stop_), "cudaEventElapsedTime");
    return static_cast<double>(between);
  }

 private:
  const CudaDevice& device_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

}  // namespace

std::unique_ptr<Stopwatch> CudaDevice::make_stopwatch() { return std::make_unique<CudaStopwatch>(*this); }

}  // namespace dgc
