#pragma once

#include "tests/emulation/emulated_backend.h"
#include "tests/ptx/interpreter/runner.h"
#include "tests/support/backends.h"

namespace dgc {

inline std::vector<BackendFactory> present_and_emulated_backends() {
  std::vector<BackendFactory> all = present_backends();
  all.push_back({"cuda-emulated", []() -> std::unique_ptr<Backend> { return std::make_unique<EmulatedBackend>(); }});
  if (ptx::runner() != nullptr) {
    all.push_back({"cuda-ptx", []() -> std::unique_ptr<Backend> {
                     return std::make_unique<EmulatedBackend>(1, make_cpu_device(), ptx::runner());
                   }});
  }
  return all;
}

// backends(), and the emulation of a GPU: with the kernels' bodies, and where nvcc was there with the PTX that it
// emits.
inline std::vector<BackendFactory> kernel_backends() { return chosen(present_and_emulated_backends()); }

// Those of them that take activations in 16 bits.
inline std::vector<BackendFactory> half_backends() {
  std::vector<BackendFactory> some = present_and_emulated_backends();
  std::erase_if(some, [](const BackendFactory& factory) { return !factory.make()->supports(DType::f16); });
  return chosen(std::move(some));
}

}  // namespace dgc
