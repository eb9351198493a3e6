#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace dgc {

// Every backend this build has: a test body that takes one of these through GENERATE(from_range(backends())) runs on
// all.
struct BackendFactory {
  std::string name;
  std::unique_ptr<Backend> (*make)();
};

inline std::vector<BackendFactory> backends() {
  return {{"cpu", [] { return make_cpu_backend(2); }}};
}

}  // namespace dgc
