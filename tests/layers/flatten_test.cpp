#include "layers/flatten.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

// PyTorch flattens [batch, channels, h, w]: element c * h * w + row * w + column. Ours lie as [batch, h, w, channels].
TEST_CASE("flatten orders its output as PyTorch's flatten of an NCHW image", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t batch = 2, h = 3, w = 2, channels = GENERATE(1, 4, 17);
  const Flatten layer;
  LayerRun run(*backend, layer, {{batch, h, w, channels}});
  std::vector<float> expected(run.x().size());
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t row = 0; row < h; ++row) {
      for (int64_t column = 0; column < w; ++column) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t nhwc = ((n * h + row) * w + column) * channels + c;
          const int64_t nchw = ((n * channels + c) * h + row) * w + column;
          expected[static_cast<size_t>(nchw)] = run.x()[static_cast<size_t>(nhwc)];
        }
      }
    }
  }
  CHECK(run.output_shape() == Shape{batch, channels * h * w});
  CHECK(run.forward() == expected);
}

TEST_CASE("flatten gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto in = GENERATE(Shape{1, 1, 1, 1}, Shape{2, 3, 4, 5}, Shape{3, 2, 2, 17});
  const Flatten layer;
  CHECK(LayerRun(*backend, layer, {in}).worst_gradient_error(0.25f) < 2e-4);  // linear
}

TEST_CASE("flatten wants an image", "[layers]") {
  CHECK_THROWS_AS(Flatten().output_shape(std::vector{Shape{2, 7}}), UserError);
  CHECK_THROWS_WITH(Flatten().output_shape(std::vector{Shape{2, 7}}),
                    Catch::Contains("flatten") && Catch::Contains("[2, 7]"));
}
