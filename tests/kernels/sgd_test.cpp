#include <catch2/catch.hpp>

#include "tests/backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

TEST_CASE("two steps of momentum SGD by hand", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const OnDevice g(*backend, {2}), m(*backend, {0}), w(*backend, {8});
  SgdArgs args{.numel = 1, .lr = 0.5f, .momentum = 0.5f, .weight_decay = 0.25f, .gradient_scale = 3};
  SECTION("plain") {
    backend->sgd_step(args, g, m, w);  // d = 6 + 2 = 8, m = 8, w = 8 - 4
    CHECK(m.host()[0] == 8);
    CHECK(w.host()[0] == 4);
    backend->sgd_step(args, g, m, w);  // d = 6 + 1 = 7, m = 4 + 7, w = 4 - 5.5
    CHECK(m.host()[0] == 11);
    CHECK(w.host()[0] == -1.5);
  }
  SECTION("Nesterov") {
    args.nesterov = true;
    backend->sgd_step(args, g, m, w);  // d = 8, m = 8, w = 8 - 0.5 * (8 + 4)
    CHECK(m.host()[0] == 8);
    CHECK(w.host()[0] == 2);
    backend->sgd_step(args, g, m, w);  // d = 6 + 0.5, m = 4 + 6.5, w = 2 - 0.5 * (6.5 + 5.25)
    CHECK(m.host()[0] == 10.5);
    CHECK(w.host()[0] == -3.875);
  }
}

TEST_CASE("SGD rounds where its definition says, at every length", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto n = GENERATE(0, 1, 15, 17, 16383, 16385, 50000);
  const bool nesterov = GENERATE(false, true);
  CAPTURE(backend->name(), n, nesterov);
  const auto g = random_floats(n, 1);
  auto m = random_floats(n, 2), w = random_floats(n, 3);
  const OnDevice tg(*backend, g), tm(*backend, m), tw(*backend, w);
  backend->sgd_step({n, 0.1f, 0.9f, 1e-4f, 0.3f, nesterov}, tg, tm, tw);
  for (size_t i = 0; i < g.size(); ++i) {
    const float d = std::fma(1e-4f, w[i], 0.3f * g[i]);
    m[i] = std::fma(0.9f, m[i], d);
    w[i] = std::fma(-0.1f, nesterov ? std::fma(0.9f, m[i], d) : m[i], w[i]);
  }
  CHECK(tm.host() == m);  // bit for bit
  CHECK(tw.host() == w);
}

TEST_CASE("the sum of squares", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto n = GENERATE(0, 1, 15, 16, 17, 4095, 4096, 4097, 100000);
  CAPTURE(backend->name(), n);
  const auto x = random_floats(n, 1);
  double expected = 0;
  for (const float v : x) expected += static_cast<double>(v) * v;
  CHECK(backend->sum_squares(OnDevice(*backend, x)) == Approx(expected).epsilon(1e-12));
}

TEST_CASE("the sum of squares is finite exactly when every element is", "[kernels]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto at = GENERATE(size_t{0}, size_t{16}, size_t{4999});
  const auto bad = GENERATE(NAN, INFINITY, -INFINITY);
  std::vector<float> x(5000, 3e38f);
  CHECK(std::isfinite(backend->sum_squares(OnDevice(*backend, x))));  // far beyond fp32 when squared
  x[at] = bad;
  CHECK_FALSE(std::isfinite(backend->sum_squares(OnDevice(*backend, x))));
}
