#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/thread_lane.h"
#include "kernels/cuda/dgc_memory.h"
#include "tests/emulation/kernel_runner.h"

namespace dgc {

namespace cuda {
class EmulatedQueue;  // kernels/cuda/queue.h next to this file
}

// Our CUDA kernels on the processor, emulated; what comes from cuDNN and cuBLAS on a GPU is the CPU backend's here. The
// ops are those of src/kernels/cuda/*.cu, compiled once more.
class EmulatedBackend final : public CpuBackend {
 public:
  explicit EmulatedBackend(
      uint64_t seed = 1, std::shared_ptr<Device> device = make_cpu_device(),
      std::shared_ptr<const emulation::KernelRunner> runner = std::make_shared<emulation::BodyRunner>())
      : CpuBackend(1, Fp32Math::exact, std::move(device)),
        runner_(std::move(runner)),
        seed_(seed),
        dgc_(std::make_shared<cuda::DgcScratch>(this->device())) {}

  std::string name() const override { return runner_->name(); }
  int threads() const override { return 0; }
  bool supports(DType activations) const override { return activations != DType::i32; }  // where the kernels are ours
  std::unique_ptr<Lane> make_lane() override {
    return std::make_unique<ThreadLane>(
        [this] { return std::make_unique<EmulatedBackend>(~seed_, device(), runner_); });
  }

#include "kernels/kernel_ops.inc"

 private:
  friend class cuda::EmulatedQueue;

  struct alignas(256) Dirty {
    std::byte bytes[256];
  };

  std::shared_ptr<const emulation::KernelRunner> runner_;
  uint64_t seed_;
  std::vector<Dirty> workspace_;
  std::vector<unsigned> tickets_;
  std::shared_ptr<cuda::DgcScratch> dgc_;
};

}  // namespace dgc
