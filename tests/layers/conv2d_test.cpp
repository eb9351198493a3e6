#include "layers/conv2d.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

TEST_CASE("conv2d slides its kernel as worked out by hand", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Conv2d layer({.in = 1, .out = 1, .kernel = 2});
  LayerRun run(*backend, layer, {{1, 2, 3, 1}});
  run.x() = {1, 2, 3, /**/ 4, 5, 6};
  run.param(0) = {1, 10, /**/ 100, 1000};  // not flipped: cross-correlation
  run.param(1) = {0.5f};
  CHECK(run.output_shape() == Shape{1, 1, 2, 1});
  CHECK(run.forward() == std::vector{1 + 20 + 400 + 5000.5f, 2 + 30 + 500 + 6000.5f});
}

TEST_CASE("conv2d gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  struct Case {
    Conv2dOptions options;
    Shape in;
  };
  const auto c = GENERATE(Case{{.in = 1, .out = 1, .kernel = 1}, {1, 1, 1, 1}},
                          Case{{.in = 3, .out = 5, .kernel = 3, .pad = 1, .bias = false}, {2, 5, 4, 3}},
                          Case{{.in = 3, .out = 4, .kernel = 3, .stride = 2, .pad = 1}, {2, 7, 6, 3}},
                          Case{{.in = 4, .out = 6, .kernel = 3, .pad = 1, .groups = 2}, {1, 5, 5, 4}},
                          Case{{.in = 6, .out = 6, .kernel = 3, .groups = 6, .bias = false}, {2, 4, 5, 6}},
                          Case{{.in = 17, .out = 15, .kernel = 1, .stride = 2, .bias = false}, {1, 5, 3, 17}},
                          Case{{.in = 2, .out = 3, .kernel = 5, .stride = 3, .pad = 2}, {1, 8, 7, 2}},
                          Case{{.in = 2, .out = 3, .kernel = {3, 5}, .stride = {1, 2}, .pad = {1, 0}}, {2, 4, 9, 2}});
  const Conv2d layer(c.options);
  CAPTURE(backend->name(), c.in.str(), c.options.out, c.options.kernel.h, c.options.stride.h, c.options.groups);
  // The loss is linear in each number: only rounding is left, so eps may be large.
  CHECK(LayerRun(*backend, layer, {c.in}).worst_gradient_error(0.25f) < 2e-4);
}

TEST_CASE("conv2d adds to the gradients of its parameters, and skips dx when not wanted", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Conv2d layer({.in = 3, .out = 2, .kernel = 3, .pad = 1});
  LayerRun run(*backend, layer, {{2, 4, 4, 3}});
  run.backward();
  const auto dw = run.dparam(0), db = run.dparam(1);
  run.backward({.dx = false, .dparams_start = 5});
  for (size_t i = 0; i < dw.size(); ++i) CHECK(run.dparam(0)[i] == Approx(dw[i] + 5).margin(1e-5));
  for (size_t i = 0; i < db.size(); ++i) CHECK(run.dparam(1)[i] == Approx(db[i] + 5).margin(1e-5));
  CHECK(run.dx() == std::vector<float>(run.dx().size(), 99.f));  // untouched
}

TEST_CASE("conv2d says what does not fit", "[layers]") {
  const Conv2d layer({.in = 3, .out = 8, .kernel = 5, .pad = 1});
  const auto shape = [&](const Shape& in) { return layer.output_shape(std::vector{in}); };
  CHECK(shape({2, 3, 9, 3}) == Shape{2, 1, 7, 8});
  CHECK_THROWS_AS(shape({2, 9, 9, 4}), UserError);
  CHECK_THROWS_WITH(shape({2, 9, 9, 4}), Catch::Contains("width, 3]") && Catch::Contains("[2, 9, 9, 4]"));
  CHECK_THROWS_WITH(shape({2, 27}), Catch::Contains("[2, 27]"));
  CHECK_THROWS_WITH(shape({2, 9, 2, 3}), Catch::Contains("kernel 5") && Catch::Contains("[2, 9, 2, 3]"));

  CHECK_THROWS_AS(Conv2d({.in = 0, .out = 1}), UserError);
  CHECK_THROWS_AS(Conv2d({.in = 1, .out = 1, .stride = 0}), UserError);
  CHECK_THROWS_AS(Conv2d({.in = 1, .out = 1, .pad = -1}), UserError);
  CHECK_THROWS_WITH(Conv2d({.in = 4, .out = 6, .groups = 4}), Catch::Contains("groups 4"));
}

TEST_CASE("conv2d parameters have PyTorch's shapes and He's deviation", "[layers]") {
  const auto params = Conv2d({.in = 32, .out = 128, .kernel = 3, .groups = 2}).params();
  REQUIRE(params.size() == 2);
  CHECK(params[0].name == "weight");
  CHECK(params[0].shape == Shape{128, 16, 3, 3});
  CHECK(params[0].init.kind == Init::Kind::normal);
  CHECK(params[0].init.value == Approx(std::sqrt(2.0 / (64 * 9))));  // 64 outputs of one group times 9 taps
  CHECK(params[1].name == "bias");
  CHECK(params[1].shape == Shape{128});
  CHECK(Conv2d({.in = 1, .out = 1, .bias = false}).params().size() == 1);
}
