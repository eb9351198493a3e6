#include "layers/padded_shortcut.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

TEST_CASE("the padded shortcut takes every other pixel and puts zeros on both sides", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const PaddedShortcut layer(2, 4, 2);
  LayerRun run(*backend, layer, {{1, 3, 2, 2}});
  run.x() = {1, 2, 3, 4, /**/ 5, 6, 7, 8, /**/ 9, 10, 11, 12};
  CHECK(run.output_shape() == Shape{1, 2, 1, 4});
  CHECK(run.forward() == std::vector<float>{0, 1, 2, 0, /**/ 0, 9, 10, 0});
  const PaddedShortcut odd(1, 4, 1);  // the one more lies behind
  LayerRun other(*backend, odd, {{1, 1, 1, 1}});
  other.x() = {5};
  CHECK(other.forward() == std::vector<float>{0, 5, 0, 0});
}

TEST_CASE("padded shortcut gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  struct Case {
    int64_t in, out, stride, h, w;
  };
  const auto c = GENERATE(Case{1, 1, 1, 1, 1}, Case{3, 7, 2, 5, 4}, Case{16, 32, 2, 4, 4}, Case{2, 4, 3, 4, 7},
                          Case{3, 6, 2, 4, 4});
  CAPTURE(backend->name(), c.in, c.out, c.stride);
  const PaddedShortcut layer(c.in, c.out, c.stride);
  CHECK(LayerRun(*backend, layer, {{2, c.h, c.w, c.in}}).worst_gradient_error(0.25f) < 2e-4);  // linear
}

TEST_CASE("the padded shortcut wants an image with its channels", "[layers]") {
  CHECK_THROWS_AS(PaddedShortcut(2, 4, 2).output_shape(std::vector{Shape{2, 7}}), UserError);
  CHECK_THROWS_WITH(PaddedShortcut(2, 4, 2).output_shape(std::vector{Shape{2, 7}}), Catch::Contains("[2, 7]"));
  CHECK_THROWS_AS(PaddedShortcut(2, 4, 2).output_shape(std::vector{Shape{1, 4, 4, 3}}), UserError);
  CHECK_THROWS_WITH(PaddedShortcut(2, 4, 2).output_shape(std::vector{Shape{1, 4, 4, 3}}),
                    Catch::Contains("width, 2]") && Catch::Contains("[1, 4, 4, 3]"));
  CHECK_THROWS_AS(PaddedShortcut(4, 2, 1), InternalError);
  CHECK_THROWS_AS(PaddedShortcut(2, 2, 0), InternalError);
}
