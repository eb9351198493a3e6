#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <typeinfo>

#include "tests/emulation/emulate.h"

namespace dgc::emulation {

// A launch of a kernel (src/kernels/cuda/queue.h) with all that any way to run it needs.
struct KernelLaunch {
  const std::type_info& kernel;
  Launch how;
  bool cooperative = false;
  const void* args = nullptr;
  size_t args_bytes = 0;
  size_t shared_bytes = 0;
  std::function<void(void* shared)> body;  // what each thread does, as g++ has compiled it
};

// How EmulatedBackend runs kernels.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  virtual std::string name() const = 0;  // of a backend that runs kernels so
  virtual void run(const KernelLaunch& launch) const = 0;
};

// Runs the bodies, as fibers.
class BodyRunner final : public KernelRunner {
 public:
  std::string name() const override { return "cuda-emulated"; }
  void run(const KernelLaunch& launch) const override { emulate_with(launch.how, launch.shared_bytes, launch.body); }
};

}  // namespace dgc::emulation
