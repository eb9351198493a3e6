// What is decided once per step (kernels/step_control.h), with numbers worked out by hand.
#include <catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

StepControl begun(Backend& backend, const StepControl& before, const StepInput& input = {}) {
  const ValuesOnDevice<StepControl> control(backend, {before});
  backend.begin_step(input, control.data(), {});
  return control.host()[0];
}

StepControl judged(Backend& backend, const std::vector<double>& squares, float loss_scale) {
  std::vector<WorkerShare> shares;
  for (const double square : squares) shares.push_back({.square = square, .loss = {.loss = NAN}});
  const ValuesOnDevice<WorkerShare> all(backend, shares);
  const ValuesOnDevice<StepControl> control(backend, {StepControl{.skip = 7, .loss_scale = loss_scale}});
  backend.judge_step({all.data(), shares.size()}, control.data());
  return control.host()[0];
}

}  // namespace

TEST_CASE("a step begins with its number and rate, no verdict and empty shares", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const size_t workers = GENERATE(0, 1, 31, 33);
  const bool stop = GENERATE(false, true);
  CAPTURE(backend->name(), workers, stop);
  StepControl before{.step = 4, .lr = 1, .skip = 1, .mean_square = 5, .loss_scale = 8, .good_steps = 3};
  before.fault = {WireFaultKind::stale, 2, 9};
  const ValuesOnDevice<StepControl> control(*backend, {before});
  const ValuesOnDevice<WorkerShare> shares(*backend, std::vector<WorkerShare>(workers + 1, {1, {2, {3, 4}}, 5}));
  backend->begin_step({.step = 5, .lr = 0.25f, .stop = stop}, control.data(), {shares.data(), workers});

  StepControl expected = before;
  expected.step = 5;
  expected.lr = 0.25f;
  expected.skip = 0;
  expected.mean_square = 0;
  const StepControl after = control.host()[0];
  CHECK(std::memcmp(&after, &expected, sizeof after) == 0);  // the fault and the fixed loss scale stay
  const auto all = shares.host();
  for (size_t i = 0; i < workers; ++i) {
    CAPTURE(i);
    CHECK(all[i].square == 0);
    CHECK(all[i].loss.loss == 0);
    CHECK(all[i].loss.counts[0] == 0);
    CHECK(all[i].loss.counts[1] == 0);
    CHECK(all[i].stop == (stop ? 1 : 0));
  }
  CHECK(all[workers].square == 1);  // what lies behind is left alone
  CHECK(all[workers].stop == 5);
}

TEST_CASE("the loss scale halves after a skipped step and doubles after enough good ones", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  StepControl control{.loss_scale = 4, .good_steps = 0, .scale_every = 2};
  const auto next = [&](int32_t skipped) {
    control.skip = skipped;
    control = begun(*backend, control);
    return control.loss_scale;
  };
  CHECK(next(0) == 4);
  CHECK(next(0) == 4);
  CHECK(next(0) == 8);
  CHECK(control.good_steps == 1);
  CHECK(next(1) == 4);
  CHECK(control.good_steps == 1);
  CHECK(next(0) == 4);  // the second step at this scale
  CHECK(next(0) == 8);
  CHECK(next(0) == 8);
  CHECK(control.good_steps == 2);
  CHECK(next(1) == 4);
  CHECK(control.good_steps == 1);  // they are counted anew
  CHECK(next(1) == 2);
  CHECK(next(1) == 1);
  CHECK(next(1) == 1);  // not below
}

TEST_CASE("the loss scale stays finite", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  StepControl control{.loss_scale = 0x1p62f, .good_steps = 1, .scale_every = 1};
  for (const float expected : {0x1p63f, 0x1p64f, 0x1p64f, 0x1p64f}) {
    control = begun(*backend, control);
    CHECK(control.loss_scale == expected);
  }
}

TEST_CASE("a step is judged by the squares of all workers", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  CHECK(judged(*backend, {18}, 1).mean_square == 18);
  CHECK(judged(*backend, {1, 2, 6}, 1).mean_square == 3);
  CHECK(judged(*backend, {32, 96}, 4).mean_square == 4);  // 64 / 4^2
  CHECK(judged(*backend, {1, 2, 6}, 1).skip == 0);
  // In worker order: 1 is lost beside 1e16, but two of them together are not.
  CHECK(judged(*backend, {1e16, 1, 1}, 1).mean_square == 1e16 / 3);
  CHECK(judged(*backend, {1, 1, 1e16}, 1).mean_square == (1e16 + 2) / 3);

  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(judged(*backend, {1, infinity}, 1).skip == 1);
  CHECK(judged(*backend, {NAN, 1}, 1).skip == 1);
  CHECK(judged(*backend, {infinity, 1, infinity}, 1).skip == 1);
}

TEST_CASE("clipping scales by the limit over the norm, and never up", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto scales = [&](double divisor, double limit, float loss_scale, const std::vector<double>& squares,
                          int64_t stride) {
    const ValuesOnDevice<double> on_device(*backend, squares);
    const ValuesOnDevice<StepControl> control(*backend, {StepControl{.loss_scale = loss_scale}});
    const auto count = static_cast<int64_t>(squares.size()) / stride;
    const ValuesOnDevice<float> out(*backend, std::vector<float>(static_cast<size_t>(count) + 1, 9));
    backend->clip_scales({.squares = on_device.data(),
                          .stride = stride,
                          .count = count,
                          .divisor = divisor,
                          .limit = limit,
                          .control = control.data(),
                          .scales = out.data()});
    auto found = out.host();
    CHECK(found.back() == 9);
    found.pop_back();
    return found;
  };
  const double none = std::numeric_limits<double>::infinity();
  CAPTURE(backend->name());
  CHECK(scales(4, none, 1, {100}, 1) == std::vector<float>{0.25f});
  CHECK(scales(2, none, 8, {100}, 1) == std::vector<float>{0.0625f});
  // A norm of 10: clipped to 1 it is a tenth; clipped to 20 it stays. Every other number is not a square.
  const auto clipped = scales(1, 1, 1, {100, -1, 0, -1}, 2);
  REQUIRE(clipped.size() == 2);
  CHECK(clipped[0] == Approx(0.1).epsilon(1e-6));
  CHECK(clipped[1] == 1);
  CHECK(scales(1, 20, 1, {100}, 1) == std::vector<float>{1});
  // The loss scale is in the squares, and no part of the norm.
  CHECK(scales(1, 20, 8, {6400}, 1) == std::vector<float>{0.125f});
  CHECK(scales(1, 1, 8, {6400}, 1).at(0) == Approx(0.0125).epsilon(1e-6));
  CHECK(scales(1, 1, 1, std::vector<double>(130, 4.0), 1) ==
        std::vector<float>(130, static_cast<float>(1 / (2 + 1e-6))));
}

TEST_CASE("a skipped step copies nothing, or alone does", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t n = GENERATE(1, 3, 4, 1023, 1025, 24581), first = GENERATE(0, 1);
  CAPTURE(backend->name(), n, first);
  const auto values = random_floats(n + first, 1);
  for (const int32_t skip : {0, 1}) {
    const ValuesOnDevice<StepControl> control(*backend, {StepControl{.skip = skip}});
    const OnDevice from(*backend, values), to(*backend, std::vector<float>(values.size() + 1, 9));
    const View target = to.from(first);
    backend->copy_unless_skipped(control.data(), from.from(first), {target.data, {n}});
    auto expected = std::vector<float>(values.size() + 1, 9);
    if (skip == 0) std::copy(values.begin() + first, values.end(), expected.begin() + first);
    CHECK(to.host() == expected);

    const OnDevice other(*backend, std::vector<float>(values.size() + 1, 9));
    const View there = other.from(first);
    backend->copy_if_skipped(control.data(), from.from(first), {there.data, {n}});
    expected.assign(values.size() + 1, 9);
    if (skip != 0) std::copy(values.begin() + first, values.end(), expected.begin() + first);
    CHECK(other.host() == expected);
  }
}

TEST_CASE("losses and their counts add up", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CAPTURE(backend->name());
  const ValuesOnDevice<LossStats> more(*backend, {{1.5, {2, 3}}}), sums(*backend, {{0.25, {4, 5}}, {7, {8, 9}}});
  backend->add_loss(more.data(), sums.data());
  const auto after = sums.host();
  CHECK((after[0].loss == 1.75 && after[0].counts[0] == 6 && after[0].counts[1] == 8));
  CHECK((after[1].loss == 7 && after[1].counts[0] == 8 && after[1].counts[1] == 9));
  backend->add_loss(sums.data() + 1, sums.data());
  CHECK(sums.host()[0].loss == 8.75);
}
