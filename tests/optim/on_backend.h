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

// The CPU backend takes every combination of a test's switches. Elsewhere the emulation of threads takes nearly all of
// the time, so the other backends leave out the combinations that the kernels cannot tell from another one.
inline bool takes_all(const BackendFactory& backend) { return backend.name == "cpu"; }

}  // namespace dgc::test
