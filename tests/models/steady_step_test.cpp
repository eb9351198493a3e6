#include <catch.hpp>

#include "tests/models/small_net.h"
#include "tests/support/large_allocations.h"

using namespace dgc;

TEST_CASE("a steady step of a network allocates nothing as large as data", "[models]") {
  if (!kCountsAllocations) {
    WARN("skipped: allocations can only be counted with glibc and without a sanitizer");
    return;
  }
  const auto backend = make_cpu_backend(2);
  // Without a linear layer, whose matrix product takes panels of bounded size inside oneDNN.
  const Network network = residual_trunk({24, 24, 3});
  NetRun net(network, *backend, 8);
  const auto step = [&] {
    net.forward();
    net.backward();
  };
  step();  // prepares primitives and grows the scratch
  step();
  const size_t peak = backend->device()->peak_bytes();
  const int before = large_allocations;
  REQUIRE(before > 0);  // the counter counts
  for (int i = 0; i < 3; ++i) step();
  CHECK(large_allocations == before);
  CHECK(backend->device()->peak_bytes() == peak);
}
