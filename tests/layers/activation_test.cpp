#include "layers/activation.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"
#include "tests/support/all_of.h"

using namespace dgc;

TEST_CASE("activations follow their formulas", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto kind = GENERATE(from_range(test::all_of<Activation>()));
  CAPTURE(backend->name(), static_cast<int>(kind));
  const ActivationLayer layer(kind);
  LayerRun run(*backend, layer, {{8}});
  run.x() = {-20, -1, -0.25f, 0, 0.25f, 1, 20, 21};
  std::vector<double> expected;
  for (const double x : run.x()) {
    expected.push_back(kind == Activation::relu           ? std::fmax(x, 0)
                       : kind == Activation::clipped_relu ? std::fmin(std::fmax(x, 0), 20)
                       : kind == Activation::tanh         ? std::tanh(x)
                                                          : 1 / (1 + std::exp(-x)));
  }
  CHECK(worst_error(run.forward(), expected) < 1e-6);
}

TEST_CASE("activation gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto kind = GENERATE(from_range(test::all_of<Activation>()));
  const auto n = GENERATE(1, 15, 17, 257);
  CAPTURE(backend->name(), static_cast<int>(kind), n);
  const ActivationLayer layer(kind);
  LayerRun run(*backend, layer, {{n}});
  for (float& x : run.x()) x += x < 0 ? -0.05f : 0.05f;  // away from the ReLU's kink
  CHECK(run.worst_gradient_error() < 1e-3);
}

TEST_CASE("an activation keeps the shape, whatever it is", "[layers]") {
  const ActivationLayer layer(Activation::relu);
  for (const Shape& shape : {Shape{3}, Shape{2, 4}, Shape{1, 2, 3, 4}}) {
    CHECK(layer.output_shape(std::vector{shape}) == shape);
  }
}
