#include "layers/dropout.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

namespace {

// The mask times 1 / (1 - p): what the layer makes of ones. run says which samples these are.
std::vector<float> mask(Backend& backend, const Dropout& layer, const RunContext& context, const Shape& in) {
  LayerRun run(backend, layer, {in});
  run.run = context;
  run.x().assign(run.x().size(), 1.f);
  return run.forward();
}

}  // namespace

TEST_CASE("dropout keeps a share of 1 - p and scales it up", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto p = GENERATE(0.f, 0.1f, 0.5f, 0.9f);
  CAPTURE(backend->name(), p);
  const auto kept = mask(*backend, Dropout({p}, "drop6"), {}, {100, 1000});
  size_t dropped = 0;
  for (const float y : kept) {
    if (y == 0) {
      ++dropped;
    } else if (y != Approx(1 / (1 - p))) {
      FAIL_CHECK("neither 0 nor 1 / (1 - p): " << y);
    }
  }
  // Five standard errors of a coin thrown 100,000 times.
  CHECK(static_cast<double>(dropped) == Approx(1e5 * p).margin(5 * std::sqrt(1e5 * p * (1 - p))));
}

TEST_CASE("dropout in backward uses the mask of forward", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Dropout layer({0.4f}, "drop6");
  LayerRun run(*backend, layer, {{3, 17}});
  run.run = {.seed = 5, .first_sample = 12};
  const auto kept = mask(*backend, layer, run.run, {3, 17});
  run.backward();
  for (size_t i = 0; i < kept.size(); ++i) CHECK(run.dx()[i] == kept[i] * run.r()[i]);
  CHECK(run.worst_gradient_error(0.25f) < 2e-4);  // linear
}

TEST_CASE("dropout is the identity in evaluation", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Dropout layer({0.5f}, "drop6");
  LayerRun run(*backend, layer, {{5, 7}});
  run.run.training = false;
  CHECK(run.forward() == run.x());
}

TEST_CASE("a sample's mask depends on its number, not on how batches are cut", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t features = GENERATE(1, 6, 7, 64);  // also where a sample starts inside a block of four random numbers
  CAPTURE(backend->name(), features);
  const Dropout layer({0.5f}, "drop6");
  const auto whole = mask(*backend, layer, {.seed = 3, .first_sample = 40}, {8, features});
  std::vector<float> parts;
  for (const auto& [first, count] : {std::pair{40, 1}, std::pair{41, 5}, std::pair{46, 2}}) {
    const auto part =
        mask(*backend, layer, {.seed = 3, .first_sample = static_cast<uint64_t>(first)}, {count, features});
    parts.insert(parts.end(), part.begin(), part.end());
  }
  CHECK(parts == whole);
}

TEST_CASE("a recorded step draws the numbers of the step that the control names", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Dropout layer({0.5f}, "drop6");
  const Buffer memory(backend->device(), sizeof(StepControl));
  StepControl control;
  control.step = 5;
  backend->device()->copy_in(memory.data(), &control, sizeof(control));
  const RunContext recorded{
      .seed = 3, .control = static_cast<const StepControl*>(memory.data()), .samples_per_step = 16, .first_sample = 8};
  CHECK(mask(*backend, layer, recorded, {4, 33}) ==
        mask(*backend, layer, {.seed = 3, .first_sample = 5 * 16 + 8}, {4, 33}));
}

TEST_CASE("masks differ between seeds, samples and layers", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Dropout layer({0.5f}, "drop6");
  const auto one = mask(*backend, layer, {.seed = 3}, {1, 100});
  CHECK(mask(*backend, layer, {.seed = 4}, {1, 100}) != one);
  CHECK(mask(*backend, layer, {.seed = 3, .first_sample = 1}, {1, 100}) != one);
  CHECK(mask(*backend, Dropout({0.5f}, "drop7"), {.seed = 3}, {1, 100}) != one);
  CHECK(mask(*backend, Dropout({0.5f}, "drop6"), {.seed = 3}, {1, 100}) == one);
}

TEST_CASE("dropout refuses a p below 0, or of 1 and more", "[layers]") {
  CHECK_NOTHROW(Dropout({0}, "d"));
  for (const float p : {-0.1f, 1.f, 2.f, NAN}) CHECK_THROWS_AS(Dropout({p}, "d"), UserError);
}
