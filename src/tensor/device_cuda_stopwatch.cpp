#include <cuda_runtime.h>

#include "tensor/device_cuda.h"

namespace dgc {
namespace {

struct Point {
  Point() { check_cuda(cudaEventCreate(&event), "cudaEventCreate"); }
  ~Point() { cudaEventDestroy(event); }
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;
  cudaEvent_t event = nullptr;
};

class CudaStopwatch final : public Stopwatch {
 public:
  explicit CudaStopwatch(const CudaDevice& device) : device_(device) {}

  void start() override { check_cuda(cudaEventRecord(start_.event, device_.stream()), "cudaEventRecord"); }
  void stop() override { check_cuda(cudaEventRecord(stop_.event, device_.stream()), "cudaEventRecord"); }
  double milliseconds() override {
    float between = 0;
    check_cuda(cudaEventSynchronize(stop_.event), "cudaEventSynchronize");
    check_cuda(cudaEventElapsedTime(&between, start_.event, stop_.event), "cudaEventElapsedTime");
    return static_cast<double>(between);
  }

 private:
  const CudaDevice& device_;
  Point start_, stop_;
};

}  // namespace

std::unique_ptr<Stopwatch> CudaDevice::make_stopwatch() { return std::make_unique<CudaStopwatch>(*this); }

}  // namespace dgc
