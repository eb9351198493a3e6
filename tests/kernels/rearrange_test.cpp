#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

TEST_CASE("the global mean of an image and its gradient", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const OnDevice x(*backend, {1, 10, 2, 20, 3, 60, /**/ 0, 0, 0, 0, 3, 6}), y(*backend, zeros(4));
  const GlobalPoolArgs args{.batch = 2, .spatial = 3, .channels = 2};
  backend->global_pool_forward(args, x, y);
  CHECK(worst_error(y.host(), std::vector<double>{2, 30, 1, 2}) < 1e-6);
  backend->global_pool_backward(args, y, x);
  const double a = 2 / 3.0, b = 10, c = 1 / 3.0, d = 2 / 3.0;
  CHECK(worst_error(x.host(), std::vector<double>{a, b, a, b, a, b, c, d, c, d, c, d}) < 1e-6);
}

TEST_CASE("the shortcut takes every stride-th pixel and pads channels on both sides", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  // 3 x 3 pixels of two channels; pixel (h, w) is (10 h + w, -(10 h + w)).
  std::vector<float> image;
  for (const int h : {0, 1, 2}) {
    for (const int w : {0, 1, 2}) image.insert(image.end(), {10.f * h + w, -10.f * h - w});
  }
  const ShortcutArgs args{.batch = 1, .in_h = 3, .in_w = 3, .in_c = 2, .out_c = 5, .stride = 2};
  REQUIRE(args.out_h() == 2);
  const OnDevice x(*backend, image), y(*backend, std::vector<float>(20, 7.f));
  backend->shortcut_forward(args, x, y);
  CHECK(y.host() == std::vector<float>{0, 0, 0, 0, 0, 0, 2, -2, 0, 0, 0, 20, -20, 0, 0, 0, 22, -22, 0, 0});

  const OnDevice dy(*backend, {9, 1, 2, 9, 9, 9, 3, 4, 9, 9, 9, 5, 6, 9, 9, 9, 7, 8, 9, 9});
  backend->shortcut_backward(args, dy, x);
  CHECK(x.host() == std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 5, 6, 0, 0, 7, 8});
}

TEST_CASE("transpose puts channels before pixels, as PyTorch's flatten does", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const OnDevice x(*backend, {1, 10, 2, 20, 3, 30, /**/ 4, 40, 5, 50, 6, 60}), y(*backend, zeros(12)),
      back(*backend, zeros(12));
  backend->transpose({.outer = 2, .inner = 1, .rows = 3, .columns = 2}, x, y);
  CHECK(y.host() == std::vector<float>{1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60});
  backend->transpose({.outer = 2, .inner = 1, .rows = 2, .columns = 3}, y, back);
  CHECK(back.host() == x.host());
}

TEST_CASE("transpose of images and back is the identity past a block's edge", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t spatial = GENERATE(1, 16, 36), channels = GENERATE(1, 17, 256);
  const OnDevice x(*backend, random_floats(2 * spatial * channels, 1)), y(*backend, zeros(2 * spatial * channels));
  const OnDevice back(*backend, zeros(2 * spatial * channels));
  backend->transpose({.outer = 2, .inner = 1, .rows = spatial, .columns = channels}, x, y);
  backend->transpose({.outer = 2, .inner = 1, .rows = channels, .columns = spatial}, y, back);
  CHECK(back.host() == x.host());
}
