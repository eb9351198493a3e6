#include "layers/lrn.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

TEST_CASE("lrn divides by its neighbours, worked out by hand", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Lrn layer({.size = 3, .alpha = 3, .beta = 0.5f, .k = 2});  // x / sqrt(2 + sum of squares of three neighbours)
  LayerRun run(*backend, layer, {{1, 1, 1, 4}});
  run.x() = {1, 1, 5, 3};
  const std::vector<double> expected = {1 / std::sqrt(4.0), 1 / std::sqrt(29.0), 5 / std::sqrt(37.0),
                                        3 / std::sqrt(36.0)};
  CHECK(worst_error(run.forward(), expected) < 1e-6);
}

TEST_CASE("lrn gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto size = GENERATE(1, 3, 5);
  const auto channels = GENERATE(1, 2, 15, 17);
  CAPTURE(backend->name(), size, channels);
  const Lrn layer({.size = size, .alpha = 0.8f, .beta = 0.75f, .k = 1.5f});  // strong, so that the sum matters
  CHECK(LayerRun(*backend, layer, {{2, 2, 3, channels}}).worst_gradient_error() < 1e-3);
}

TEST_CASE("lrn wants an image and an odd size", "[layers]") {
  CHECK(Lrn({}).output_shape(std::vector{Shape{2, 3, 4, 5}}) == Shape{2, 3, 4, 5});
  CHECK_THROWS_AS(Lrn({}).output_shape(std::vector{Shape{2, 7}}), UserError);
  CHECK_THROWS_WITH(Lrn({}).output_shape(std::vector{Shape{2, 7}}),
                    Catch::Contains("lrn") && Catch::Contains("[2, 7]"));
  for (const int size : {-1, 0, 4}) CHECK_THROWS_AS(Lrn({.size = size}), UserError);
}
