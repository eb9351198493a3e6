#pragma once

#include "tests/emulation/emulated_backend.h"
#include "tests/ptx/interpreter/runner.h"
#include "tests/support/backends.h"

namespace dgc {

// What a program adds that runs the kernels in one more way (tests/ptx/sass).
inline std::vector<BackendFactory>& added_backends() {
  static std::vector<BackendFactory> added;
  return added;
}

// Our kernels without a GPU: their bodies, and where nvcc was there the PTX that it makes of them. Each is an
// EmulatedBackend.
inline std::vector<BackendFactory> emulated_backends() {
  std::vector<BackendFactory> all{
      {"cuda-emulated", []() -> std::unique_ptr<Backend> { return std::make_unique<EmulatedBackend>(); }}};
  if (ptx::runner() != nullptr) {
    all.push_back({"cuda-ptx", []() -> std::unique_ptr<Backend> {
                     return std::make_unique<EmulatedBackend>(1, make_cpu_device(), ptx::runner());
                   }});
  }
  all.insert(all.end(), added_backends().begin(), added_backends().end());
  return all;
}

inline std::vector<BackendFactory> present_and_emulated_backends() {
  std::vector<BackendFactory> all = present_backends();
  for (BackendFactory& factory : emulated_backends()) all.push_back(std::move(factory));
  return all;
}

// backends(), and emulated_backends().
inline std::vector<BackendFactory> kernel_backends() { return chosen(present_and_emulated_backends()); }

// For tensors of many millions of elements, on which kernels that are interpreted would take minutes.
inline std::vector<BackendFactory> quick_kernel_backends() {
  std::vector<BackendFactory> some = present_and_emulated_backends();
  std::erase_if(
      some, [](const BackendFactory& factory) { return factory.name == "cuda-ptx" || factory.name == "cuda-sass"; });
  return chosen(std::move(some));
}

// Those of them that take activations in 16 bits.
inline std::vector<BackendFactory> half_backends() {
  std::vector<BackendFactory> some = present_and_emulated_backends();
  std::erase_if(some, [](const BackendFactory& factory) { return !factory.make()->supports(DType::f16); });
  return chosen(std::move(some));
}

}  // namespace dgc
