#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace dgc {

// Every backend that this build and machine have: a test body that takes one of these through
// GENERATE(from_range(backends())) runs on all.
struct BackendFactory {
  std::string name;
  std::unique_ptr<Backend> (*make)();
};

inline std::vector<BackendFactory> backends() {
  std::vector<BackendFactory> all{{"cpu", [] { return make_cpu_backend(2); }}};
  if (cuda_devices() > 0) all.push_back({"cuda", [] { return make_cuda_backend(0, Fp32Math::exact); }});
  return all;
}

}  // namespace dgc
