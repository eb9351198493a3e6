#pragma once

#include <memory>

#include "kernels/cpu/cpu_backend.h"
#include "tests/kernels/emulated_queue.h"

namespace dgc {

namespace cuda {
struct DgcScratch;  // kernels/cuda/dgc_scratch.h
}

// Our CUDA kernels on the processor, emulated; what comes from cuDNN and cuBLAS on a GPU is the CPU backend's here. The
// bodies lie in emulated_backend_*.cpp, one file per group of ops.
class EmulatedBackend final : public CpuBackend {
 public:
  explicit EmulatedBackend(uint64_t seed = 1);
  ~EmulatedBackend() override;

  std::string name() const override { return "cuda-emulated"; }

  void dgc_compress(const DgcCompressArgs&) override;
  void dgc_apply(const DgcApplyArgs&) override;
  void dgc_pack(const DgcPackArgs&) override;

 private:
  EmulatedQueue queue_;
  std::shared_ptr<cuda::DgcScratch> dgc_;
};

}  // namespace dgc
