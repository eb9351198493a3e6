#include "layers/sum.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

TEST_CASE("two tensors are added, and both get the gradient", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const SumLayer sum;
  LayerRun run(*backend, sum, {{2, 3}, {2, 3}});
  run.x(0) = {1, 2, 3, 4, 5, 6};
  run.x(1) = {100, 200, 300, 400, 500, 600};
  CHECK(run.forward() == std::vector<float>{101, 202, 303, 404, 505, 606});
  run.backward();
  CHECK(run.dx(0) == run.r());
  CHECK(run.dx(1) == run.r());
  CHECK_THROWS_WITH(sum.output_shape(std::vector{Shape{3, 4, 5}, Shape{3, 4, 6}}),
                    Catch::Contains("[3, 4, 5]") && Catch::Contains("[3, 4, 6]"));
}
