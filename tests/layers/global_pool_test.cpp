#include <catch.hpp>

#include "layers/pool.h"
#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

TEST_CASE("global_pool is the mean over height and width", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const GlobalPool layer;
  LayerRun run(*backend, layer, {{2, 1, 2, 2}});
  run.x() = {1, 10, 3, 30, /**/ -5, 0, 5, 7};
  CHECK(run.output_shape() == Shape{2, 2});
  CHECK(run.forward() == std::vector<float>{2, 20, 0, 3.5f});
}

TEST_CASE("global_pool gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto in = GENERATE(Shape{1, 1, 1, 1}, Shape{2, 3, 5, 7}, Shape{3, 8, 8, 17});
  CAPTURE(backend->name(), in.str());
  const GlobalPool layer;
  CHECK(LayerRun(*backend, layer, {in}).worst_gradient_error(0.25f) < 2e-4);  // linear: only rounding is left
}

TEST_CASE("global_pool wants an image", "[layers]") {
  CHECK_THROWS_AS(GlobalPool().output_shape(std::vector{Shape{2, 7}}), UserError);
  CHECK_THROWS_WITH(GlobalPool().output_shape(std::vector{Shape{2, 7}}),
                    Catch::Contains("global_pool") && Catch::Contains("[batch, height, width, channels]") &&
                        Catch::Contains("[2, 7]"));
}
