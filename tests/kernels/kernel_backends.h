#pragma once

#include "tests/backends.h"
#include "tests/kernels/emulated_backend.h"

namespace dgc {

// backends(), and the emulation of a GPU.
inline std::vector<BackendFactory> kernel_backends() {
  std::vector<BackendFactory> all = backends();
  all.push_back({"cuda-emulated", []() -> std::unique_ptr<Backend> { return std::make_unique<EmulatedBackend>(); }});
  return all;
}

}  // namespace dgc
