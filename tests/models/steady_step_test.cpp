#include <catch.hpp>

#include "tests/models/small_net.h"
#include "tests/support/large_allocations.h"

using namespace dgc;

namespace {

// So many convolutions that a list of them is as large as data too.
Network deep_chain() {
  Network net({8, 8, 4});
  for (int i = 0; i < 40; ++i) {
    net.append("conv" + std::to_string(i),
               std::make_unique<Conv2d>(Conv2dOptions{.in = 4, .out = 4, .kernel = 3, .pad = 1}));
  }
  return net;
}

}  // namespace

TEST_CASE("a steady step of a network allocates nothing as large as data", "[models]") {
  if (!kCountsAllocations) {
    WARN("skipped: allocations can only be counted with glibc and without a sanitizer");
    return;
  }
  const auto backend = make_cpu_backend(2);
  // Both are without a linear layer, whose matrix product takes panels of bounded size inside oneDNN.
  const bool is_deep = GENERATE(false, true);
  const Network network = is_deep ? deep_chain() : residual_trunk({24, 24, 3});
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
