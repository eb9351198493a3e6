#include "layers/batch_norm.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

namespace {

// Moves x so that no output lies within `distance` of the ReLU's kink, where finite differences mean nothing.
// Pushing outputs away through the residual keeps the statistics of x as they are; without one, shift does it.
void avoid_kink(LayerRun& run, const BatchNormOptions& options, float distance, const std::vector<float>& linear) {
  for (size_t i = 0; i < linear.size(); ++i) {
    if (std::fabs(linear[i]) >= distance) continue;
    REQUIRE(options.residual);
    run.x(1)[i] += linear[i] < 0 ? -distance : distance;
  }
}

// What the layer computes before its ReLU.
std::vector<float> without_relu(Backend& backend, LayerRun& run, BatchNormOptions options, const Shape& in) {
  options.relu = false;
  const BatchNorm layer(options);
  LayerRun plain(backend, layer, std::vector<Shape>(options.residual ? 2 : 1, in));
  plain.x(0) = run.x(0);
  if (options.residual) plain.x(1) = run.x(1);
  plain.param(0) = run.param(0), plain.param(1) = run.param(1);
  return plain.forward();
}

}  // namespace

TEST_CASE("batch_norm normalises by hand, and remembers as PyTorch does", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const BatchNorm layer({.channels = 2, .eps = 0, .momentum = 0.25f});
  LayerRun run(*backend, layer, {{4, 2}});
  run.x() = {1, 10, /**/ 1, 10, /**/ 3, 30, /**/ 3, 30};  // mean 2, variance 1; mean 20, variance 100
  run.param(0) = {5, 2};
  run.param(1) = {0.5f, -1};
  const std::vector<float> expected = {-4.5f, -3, -4.5f, -3, 5.5f, 1, 5.5f, 1};
  CHECK(worst_error(run.forward(), expected) < 1e-6);
  CHECK(worst_error(run.buffer(0), std::vector{0.5f, 5.f}) < 1e-6);  // 0.25 * the mean
  // 0.75 * 1 + 0.25 * the unbiased variance, 4/3 of the biased one.
  CHECK(worst_error(run.buffer(1), std::vector{0.75f + 1 / 3.f, 0.75f + 100 / 3.f}) < 1e-6);

  run.run.training = false;  // now the remembered statistics count, and stay
  run.buffer(0) = {1, 0};
  run.buffer(1) = {4, 25};
  const std::vector<float> evaluated = {0.5f, 3, 0.5f, 3, 5.5f, 11, 5.5f, 11};
  CHECK(worst_error(run.forward(), evaluated) < 1e-6);
  CHECK(run.buffer(0) == std::vector<float>{1, 0});
  CHECK(run.buffer(1) == std::vector<float>{4, 25});
}

TEST_CASE("batch_norm gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto relu = GENERATE(false, true), residual = GENERATE(false, true);
  const auto in = GENERATE(Shape{2, 3, 3, 5}, Shape{20, 3}, Shape{1, 4, 5, 17});
  CAPTURE(backend->name(), relu, residual, in.str());
  const BatchNormOptions options{.channels = in[in.rank() - 1], .relu = relu, .residual = residual};
  const BatchNorm layer(options);
  LayerRun run(*backend, layer, std::vector<Shape>(residual ? 2 : 1, in));

  const float eps = 1e-2f;
  if (relu && residual) avoid_kink(run, options, 0.1f, without_relu(*backend, run, options, in));
  if (relu && !residual) {
    // Without a residual the kink is avoided by x: values near -1 and near 1 in each channel, never in between.
    for (float& x : run.x()) x = (x < 0 ? -1.f : 1.f) + 0.2f * x;
    for (float& shift : run.param(1)) shift *= 0.1f;
    for (float& scale : run.param(0)) scale = scale < 0 ? scale - 0.5f : scale + 0.5f;
    for (const float y : without_relu(*backend, run, options, in)) REQUIRE(std::fabs(y) > 0.05f);
  }
  CHECK(run.worst_gradient_error(eps) < 2e-3);  // curved: eps squared times the third derivative is left
}

TEST_CASE("batch_norm's ReLU passes half the outputs and masks the shortcut's gradient", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const BatchNorm layer({.channels = 3, .relu = true, .residual = true});
  LayerRun run(*backend, layer, {{4, 2, 2, 3}, {4, 2, 2, 3}});
  const auto y = run.forward();
  run.backward();
  int closed = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    CHECK(y[i] >= 0);
    CHECK(run.dx(1)[i] == (y[i] > 0 ? run.r()[i] : 0.f));
    closed += y[i] == 0;
  }
  CHECK(closed > 0);
  CHECK(closed < static_cast<int>(y.size()));
}

TEST_CASE("batch_norm wants more than one value to normalise", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const BatchNorm layer({.channels = 3});
  LayerRun one(*backend, layer, {{1, 1, 1, 3}});
  CHECK_THROWS_WITH(one.forward(), Catch::Contains("a BatchNorm of 3 channels has one value of each to normalise"));
}

TEST_CASE("batch_norm adds to the gradients of its parameters", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const BatchNorm layer({.channels = 3});
  LayerRun run(*backend, layer, {{5, 3}});
  run.backward();
  const auto dscale = run.dparam(0), dshift = run.dparam(1);
  run.backward({.dparams_start = 5});
  for (size_t i = 0; i < 3; ++i) {
    CHECK(run.dparam(0)[i] == Approx(dscale[i] + 5).margin(1e-5));
    CHECK(run.dparam(1)[i] == Approx(dshift[i] + 5).margin(1e-5));
  }
}

TEST_CASE("batch_norm says what does not fit", "[layers]") {
  const BatchNorm plain({.channels = 4}), residual({.channels = 4, .residual = true});
  CHECK(plain.output_shape(std::vector{Shape{2, 3, 3, 4}}) == Shape{2, 3, 3, 4});
  CHECK_THROWS_AS(plain.output_shape(std::vector{Shape{2, 3, 3, 5}}), UserError);
  CHECK_THROWS_WITH(plain.output_shape(std::vector{Shape{2, 3, 3, 5}}),
                    Catch::Contains("4 channels") && Catch::Contains("[2, 3, 3, 5]"));
  CHECK_THROWS_WITH(residual.output_shape(std::vector{Shape{2, 3, 3, 4}, Shape{2, 3, 2, 4}}),
                    Catch::Contains("[2, 3, 3, 4]") && Catch::Contains("[2, 3, 2, 4]"));
  CHECK_THROWS_AS(BatchNorm({.channels = 0}), UserError);
}

TEST_CASE("batch_norm starts as the identity on normalised data", "[layers]") {
  const BatchNorm layer({.channels = 7});
  const auto params = layer.params(), buffers = layer.buffers();
  REQUIRE((params.size() == 2 && buffers.size() == 2));
  CHECK((params[0].name == "weight" && params[0].init.value == 1));
  CHECK((params[1].name == "bias" && params[1].init.value == 0));
  CHECK((buffers[0].name == "running_mean" && buffers[0].init.value == 0));
  CHECK((buffers[1].name == "running_var" && buffers[1].init.value == 1));
  for (const auto& spec : {params[0], params[1], buffers[0], buffers[1]}) CHECK(spec.shape == Shape{7});
}
