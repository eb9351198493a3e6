#include "layers/linear.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

TEST_CASE("linear computes x W^T + b", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Linear layer({2, 2});
  LayerRun run(*backend, layer, {{1, 2}});
  run.x() = {1, 2};
  run.param(0) = {10, 1, /**/ 0, -1};
  run.param(1) = {0.5f, 0};
  CHECK(run.forward() == std::vector{12.5f, -2.f});
}

TEST_CASE("linear gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto in = GENERATE(1, 15, 17), out = GENERATE(1, 16, 33);
  const auto bias = GENERATE(true, false);
  CAPTURE(backend->name(), in, out, bias);
  const Linear layer({in, out, bias});
  CHECK(LayerRun(*backend, layer, {{3, in}}).worst_gradient_error(0.25f) < 2e-4);  // linear: only rounding is left
}

TEST_CASE("linear adds to the gradients of its parameters, and skips dx when not wanted", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Linear layer({5, 4});
  LayerRun run(*backend, layer, {{3, 5}});
  run.backward();
  const auto dw = run.dparam(0), db = run.dparam(1);
  run.backward({.dx = false, .dparams_start = 5});
  for (size_t i = 0; i < dw.size(); ++i) CHECK(run.dparam(0)[i] == Approx(dw[i] + 5).margin(1e-5));
  for (size_t i = 0; i < db.size(); ++i) CHECK(run.dparam(1)[i] == Approx(db[i] + 5).margin(1e-5));
  CHECK(run.dx() == std::vector<float>(run.dx().size(), 99.f));
}

TEST_CASE("linear says what does not fit", "[layers]") {
  const Linear layer({4, 2});
  CHECK(layer.output_shape(std::vector{Shape{3, 4}}) == Shape{3, 2});
  CHECK(layer.output_shape(std::vector{Shape{3, 7, 4}}) == Shape{3, 7, 2});
  CHECK_THROWS_AS(layer.output_shape(std::vector{Shape{3, 5}}), UserError);
  CHECK_THROWS_WITH(layer.output_shape(std::vector{Shape{3, 5}}),
                    Catch::Contains("[batch, 4]") && Catch::Contains("[3, 5]"));
  CHECK_THROWS_WITH(layer.output_shape(std::vector{Shape{3, 2, 2, 1}}),
                    Catch::Contains("[3, 2, 2, 1]") && Catch::Contains("flatten"));
  CHECK_THROWS_AS(Linear({0, 2}), UserError);
  CHECK_THROWS_AS(Linear({2, -1}), UserError);
}

TEST_CASE("linear parameters have PyTorch's shapes and range", "[layers]") {
  const auto params = Linear({16, 3}).params();
  REQUIRE(params.size() == 2);
  CHECK(params[0].shape == Shape{3, 16});
  CHECK(params[1].shape == Shape{3});
  for (const ParamSpec& spec : params) {
    CHECK(spec.init.kind == Init::Kind::uniform);
    CHECK(spec.init.value == 0.25f);  // 1 / sqrt(16)
  }
  CHECK(Linear({16, 3, false}).params().size() == 1);
}
