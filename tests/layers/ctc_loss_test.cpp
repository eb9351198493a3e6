#include "layers/ctc_loss.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

// Two streams of two steps and one, two frames to a step; even odds between two classes.
struct Run {
  explicit Run(Backend& backend)
      : x(backend, zeros(2 * 2 * 2)),
        dx(backend, std::vector<float>(8, 9.f)),
        labels(backend, {1, 1, 0, 0}),
        lengths(backend, {4, 1}),
        stats(backend, {7, 7, 7}) {}

  LossArgs args(Backend& backend) const {
    return {.backend = backend,
            .x = {x.view().data, {2, 2, 2}},
            .labels = {labels.data(), {2, 2}, DType::i32},
            .params = {},
            .scratch = {},
            .stats = stats.data(),
            .lengths = {lengths.data(), {2}, DType::i32}};
  }

  OnDevice x, dx;
  ValuesOnDevice<int32_t> labels, lengths;
  ValuesOnDevice<double> stats;
};

}  // namespace

TEST_CASE("the CTC loss by hand", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const CtcLoss loss({.classes = 2, .frames_per_step = 2});
  const Run run(*backend);
  LossArgs args = run.args(*backend);
  loss.run(args);  // evaluation
  const auto stats = run.stats.host();
  CHECK(stats[0] == Approx(-std::log(0.75) - std::log(0.5)));  // three of four paths; the blank
  CHECK((stats[1] == 2 && stats[2] == 0));
  CHECK(run.dx.host() == std::vector<float>(8, 9.f));

  args.dx = {run.dx.view().data, {2, 2, 2}};
  args.gradient_scale = 6;
  loss.run(args);
  CHECK(run.stats.host() == stats);
  // A step's softmax less its share of the paths: two in three have the letter in a step.
  CHECK(worst_error(run.dx.host(), std::vector<double>{1, -1, -3, 3, 1, -1, 0, 0}) < 1e-5);
}

TEST_CASE("the logits of a CTC loss are the network's output", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto values = random_floats(8, 1);
  const OnDevice x(*backend, values), to(*backend, zeros(8));
  const CtcLoss loss({.classes = 2});
  loss.logits(*backend, {x.view().data, {2, 2, 2}}, {}, {to.view().data, {4, 2}});
  CHECK(to.host() == values);
}

TEST_CASE("the CTC loss says what does not fit", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const CtcLoss loss({.classes = 2});
  CHECK(loss.logits_shape({7, 3, 2}) == Shape{21, 2});
  CHECK_THROWS_WITH(loss.logits_shape({7, 2}), Catch::Contains("[7, 2]"));
  CHECK_THROWS_WITH(loss.logits_shape({7, 3, 4}), Catch::Contains("[7, 3, 4]"));
  CHECK_THROWS_AS(CtcLoss({.classes = 1}), UserError);
  const Run run(*backend);
  const auto refused = [&](const auto& spoil) {
    LossArgs args = run.args(*backend);
    spoil(args);
    CHECK_THROWS_AS(loss.run(args), InternalError);
    CHECK_THROWS_WITH(loss.run(args), Catch::Contains(" of i32") || Catch::Contains("an i32 length for each stream"));
  };
  refused([](LossArgs& args) { args.lengths = {}; });
  refused([](LossArgs& args) { args.lengths.shape = {3}; });
  refused([](LossArgs& args) { args.lengths.dtype = DType::f32; });
  refused([](LossArgs& args) { args.labels.shape = {4}; });
  refused([](LossArgs& args) { args.labels.dtype = DType::f32; });
}
