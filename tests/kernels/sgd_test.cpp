#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

TEST_CASE("two steps of momentum SGD by hand", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const OnDevice g(*backend, {2}), m(*backend, {0}), w(*backend, {8}), scale(*backend, {3});
  const ValuesOnDevice<StepControl> control(*backend, {{.lr = 0.5f}});
  SgdArgs args{
      .numel = 1, .momentum = 0.5f, .weight_decay = 0.25f, .scale = scale.view().f32(), .control = control.data()};
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
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto n = GENERATE(0, 1, 15, 17, 16383, 16385, 50000);
  const bool nesterov = GENERATE(false, true);
  CAPTURE(backend->name(), n, nesterov);
  const auto g = random_floats(n, 1);
  auto m = random_floats(n, 2), w = random_floats(n, 3);
  const OnDevice tg(*backend, g), tm(*backend, m), tw(*backend, w), scale(*backend, {0.3f});
  const ValuesOnDevice<StepControl> control(*backend, {{.lr = 0.1f}});
  backend->sgd_step({n, 0.9f, 1e-4f, nesterov, scale.view().f32(), control.data()}, tg, tm, tw);
  for (size_t i = 0; i < g.size(); ++i) {
    const float d = std::fma(1e-4f, w[i], 0.3f * g[i]);
    m[i] = std::fma(0.9f, m[i], d);
    w[i] = std::fma(-0.1f, nesterov ? std::fma(0.9f, m[i], d) : m[i], w[i]);
  }
  CHECK(tm.host() == m);  // bit for bit
  CHECK(tw.host() == w);
}

TEST_CASE("SGD without momentum needs no memory for it", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto n = GENERATE(1, 17, 16385);
  const bool nesterov = GENERATE(false, true);
  CAPTURE(backend->name(), n, nesterov);
  const auto g = random_floats(n, 1);
  auto w = random_floats(n, 3);
  const OnDevice tg(*backend, g), tw(*backend, w), scale(*backend, {0.3f});
  const ValuesOnDevice<StepControl> control(*backend, {{.lr = 0.1f}});
  backend->sgd_step({n, 0, 1e-4f, nesterov, scale.view().f32(), control.data()}, tg, View(), tw);
  for (size_t i = 0; i < g.size(); ++i) w[i] = std::fma(-0.1f, std::fma(1e-4f, w[i], 0.3f * g[i]), w[i]);
  CHECK(tw.host() == w);  // bit for bit
}

TEST_CASE("a skipped step changes nothing, not even with a NaN in the gradient", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const OnDevice g(*backend, {NAN, 1}), m(*backend, {1, 2}), w(*backend, {3, 4}), scale(*backend, {1});
  const ValuesOnDevice<StepControl> control(*backend, {{.lr = 0.1f, .skip = 1}});
  backend->sgd_step({2, 0.9f, 1e-4f, true, scale.view().f32(), control.data()}, g, m, w);
  CHECK(m.host() == std::vector<float>{1, 2});
  CHECK(w.host() == std::vector<float>{3, 4});
}

TEST_CASE("SGD at an address that packs do not fit", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const OnDevice g(*backend, {9, 1, 1, 1}), m(*backend, {9, 1, 2, 3}), w(*backend, {9, 0, 0, 0}), scale(*backend, {1});
  const ValuesOnDevice<StepControl> control(*backend, {{.lr = 1}});
  backend->sgd_step({3, 1, 0, false, scale.view().f32(), control.data()}, g.from(1), m.from(1), w.from(1));
  CHECK(m.host() == std::vector<float>{9, 2, 3, 4});
  CHECK(w.host() == std::vector<float>{9, -2, -3, -4});
}
