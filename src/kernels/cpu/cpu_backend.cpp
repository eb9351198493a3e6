#include "kernels/cpu/cpu_backend.h"

#include <omp.h>

#include "kernels/cpu/dgc_scratch.h"
#include "kernels/cpu/dnnl_cache.h"
#include "kernels/cpu/thread_lane.h"

namespace dgc {

CpuBackend::CpuBackend(int threads, std::shared_ptr<Device> device)
    : threads_(threads > 0 ? threads : omp_get_num_procs()),
      device_(std::move(device)),
      dnnl_(std::make_unique<DnnlCache>()),
      dgc_scratch_(std::make_unique<DgcScratch>()) {
  // oneDNN asks OpenMP for its number of threads as well, so it is set for the thread and not per region.
  omp_set_num_threads(threads_);
}

CpuBackend::~CpuBackend() = default;

std::unique_ptr<Lane> CpuBackend::make_lane() {
  return std::make_unique<ThreadLane>([this] { return std::make_unique<CpuBackend>(threads_, device_); });
}

std::byte* CpuBackend::scratch(size_t bytes) {
  if (bytes > scratch_.bytes()) {
    scratch_ = Buffer();  // give the old memory back before asking for more
    scratch_ = Buffer(device_, bytes, MemoryUse::scratch);
  }
  return static_cast<std::byte*>(scratch_.data());
}

float* CpuBackend::scratch_floats(int64_t count) {
  return reinterpret_cast<float*>(scratch(static_cast<size_t>(count) * sizeof(float)));
}

std::unique_ptr<Backend> make_cpu_backend(int threads) { return std::make_unique<CpuBackend>(threads); }

}  // namespace dgc
