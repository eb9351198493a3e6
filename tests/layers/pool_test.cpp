#include "layers/pool.h"

#include <algorithm>
#include <catch.hpp>
#include <numeric>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

TEST_CASE("max pooling takes the largest of each window, padding never wins", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Pool layer({.kind = PoolKind::max, .kernel = 3, .stride = 2, .pad = 1});
  LayerRun run(*backend, layer, {{1, 3, 4, 1}});
  run.x() = {-1, -2, -3, -4, /**/ -5, -6, -7, -8, /**/ -9, -10, -11, -12};
  CHECK(run.output_shape() == Shape{1, 2, 2, 1});
  CHECK(run.forward() == std::vector<float>{-1, -2, -5, -6});
  run.r() = {1, 10, 100, 1000};
  run.backward();
  CHECK(run.dx() == std::vector<float>{1, 10, 0, 0, /**/ 100, 1000, 0, 0, /**/ 0, 0, 0, 0});
}

TEST_CASE("of equally large pixels max pooling takes the first", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Pool layer({.kind = PoolKind::max, .kernel = 2, .stride = 2});
  LayerRun run(*backend, layer, {{1, 2, 4, 1}});
  run.x() = {3, 3, 1, 2, /**/ 3, 3, 2, 2};
  run.r() = {5, 7};
  CHECK(run.forward() == std::vector<float>{3, 2});
  run.backward();
  CHECK(run.dx() == std::vector<float>{5, 0, 0, 7, /**/ 0, 0, 0, 0});
}

TEST_CASE("average pooling counts the padding", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Pool layer({.kind = PoolKind::average, .kernel = 2, .stride = 2, .pad = 1});
  LayerRun run(*backend, layer, {{1, 2, 2, 1}});
  run.x() = {4, 8, /**/ 12, 16};
  CHECK(run.forward() == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("pool gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto kind = GENERATE(PoolKind::max, PoolKind::average);
  const auto channels = GENERATE(1, 17);
  struct Case {
    int64_t kernel, stride, pad, h, w;
  };
  const auto c = GENERATE(Case{2, 2, 0, 4, 5}, Case{3, 2, 1, 5, 4}, Case{3, 1, 1, 3, 3}, Case{1, 1, 0, 2, 3});
  CAPTURE(backend->name(), kind == PoolKind::max, channels, c.kernel, c.stride, c.pad);
  const Pool layer({kind, c.kernel, c.stride, c.pad});
  LayerRun run(*backend, layer, {{2, c.h, c.w, channels}});
  // Distinct values, 4 eps apart: no step changes which one is the largest.
  const float eps = 0.01f;
  std::vector<size_t> order(run.x().size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return run.x()[i]; });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    run.x()[order[rank]] = 4 * eps * (static_cast<float>(rank) - static_cast<float>(order.size()) / 2);
  }
  CHECK(run.worst_gradient_error(eps) < 1e-3);
}

TEST_CASE("max pooling gives the same output in evaluation, where nothing is saved", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Pool layer({.kind = PoolKind::max, .kernel = 3, .stride = 2, .pad = 1});
  LayerRun run(*backend, layer, {{2, 7, 7, 5}});
  const auto trained = run.forward();
  run.run.training = false;
  CHECK(run.forward() == trained);
}

TEST_CASE("pool says what does not fit", "[layers]") {
  const Pool layer({.kernel = 3, .stride = 2});
  CHECK(layer.output_shape(std::vector{Shape{1, 13, 4, 5}}) == Shape{1, 6, 1, 5});
  CHECK_THROWS_AS(layer.output_shape(std::vector{Shape{1, 13, 2, 5}}), UserError);
  CHECK_THROWS_WITH(layer.output_shape(std::vector{Shape{1, 13, 2, 5}}),
                    Catch::Contains("kernel 3") && Catch::Contains("[1, 13, 2, 5]"));
  CHECK_THROWS_WITH(layer.output_shape(std::vector{Shape{2, 7}}), Catch::Contains("pool") && Catch::Contains("[2, 7]"));
  CHECK_THROWS_AS(Pool({.kernel = 0}), UserError);
  CHECK_THROWS_AS(Pool({.kernel = 2, .stride = 0}), UserError);
  CHECK_NOTHROW(Pool({.kernel = 256}));
  CHECK_THROWS_WITH(Pool({.kernel = 257}), "pool: kernel 257 is larger than 256");
  CHECK_THROWS_WITH(Pool({.kernel = 3, .stride = 1, .pad = 2}), Catch::Contains("half the kernel"));
}
