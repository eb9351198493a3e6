#pragma once

#include <utility>

#include "tests/kernels/kernel_backends.h"
#include "tests/optim/cluster.h"

namespace dgc::test {

// The same cluster with one of kernel_backends() for each rank.
inline ClusterOptions on(const BackendFactory& backend, ClusterOptions options) {
  options.backend = backend.make;
  return options;
}

}  // namespace dgc::test
