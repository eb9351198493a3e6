#include "layers/sequence.h"

#include <catch.hpp>

#include "layers/lookahead.h"
#include "layers/sequence_layout.h"
#include "layers/sequence_norm.h"
#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

namespace {

constexpr int64_t kSteps = 4, kStreams = 3;

// Three streams of 4, 1 and 3 steps, two frames to a step.
struct Lengths {
  explicit Lengths(Backend& backend) : on_device(backend, {8, 2, 5}) {}
  ConstView view() const { return {on_device.data(), {kStreams}, DType::i32}; }
  ValuesOnDevice<int32_t> on_device;
};

LayerRun sequence_run(Backend& backend, const Layer& layer, const std::vector<Shape>& in, const Lengths& lengths) {
  LayerRun run(backend, layer, in);
  run.run.lengths = lengths.view();
  return run;
}

Shape in_order(SequenceOrder order, int64_t a, int64_t b) {
  return order == SequenceOrder::steps_first ? Shape{kSteps, kStreams, a, b} : Shape{kStreams, kSteps, a, b};
}

}  // namespace

TEST_CASE("sequence layers' gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto order = GENERATE(SequenceOrder::steps_first, SequenceOrder::streams_first);
  CAPTURE(backend->name(), static_cast<int>(order));
  const Lengths lengths(*backend);
  const SequenceOptions options{2, order};
  const Shape shape = in_order(order, 2, 3);
  const SequenceMask mask(options);
  const SequenceReverse reverse(options);
  CHECK(sequence_run(*backend, mask, {shape}, lengths).worst_gradient_error() < 1e-3);
  CHECK(sequence_run(*backend, reverse, {shape}, lengths).worst_gradient_error() < 1e-3);
  const SequenceNorm norm({.channels = 3, .sequences = options});
  CHECK(sequence_run(*backend, norm, {shape}, lengths).worst_gradient_error() < 5e-3);
}

TEST_CASE("layout layers' and lookahead's gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Lengths lengths(*backend);
  const FramesToImage to_image(2);
  const ImageToFrames to_frames;
  CHECK(sequence_run(*backend, to_image, {{kSteps, kStreams, 5}}, lengths).worst_gradient_error() < 1e-3);
  CHECK(sequence_run(*backend, to_frames, {{kStreams, kSteps, 2, 3}}, lengths).worst_gradient_error() < 1e-3);
  const int64_t context = GENERATE(1, 3, 6);
  const Lookahead lookahead(5, context);
  CHECK(LayerRun(*backend, lookahead, {{kSteps, kStreams, 5}}).worst_gradient_error() < 1e-3);
}

TEST_CASE("frames become an image and back", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Lengths lengths(*backend);
  const FramesToImage to_image(2);
  const ImageToFrames to_frames;
  LayerRun image = sequence_run(*backend, to_image, {{kSteps, kStreams, 2}}, lengths);
  for (size_t i = 0; i < image.x().size(); ++i) image.x()[i] = static_cast<float>(i + 1);
  CHECK(image.output_shape() == Shape{kStreams, kSteps, 2, 1});
  CHECK(image.forward() ==
        std::vector<float>{1, 2, 7, 8, 13, 14, 19, 20, 3, 4, 0, 0, 0, 0, 0, 0, 5, 6, 11, 12, 17, 18, 0, 0});
  LayerRun frames(*backend, to_frames, {{1, 2, 2, 3}});  // 2 steps, 2 frequencies, 3 channels
  for (size_t i = 0; i < frames.x().size(); ++i) frames.x()[i] = static_cast<float>(i);
  CHECK(frames.output_shape() == Shape{2, 1, 6});
  CHECK(frames.forward() == std::vector<float>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11});
}

TEST_CASE("sequence norm in evaluation uses the running statistics, and masks", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Lengths lengths(*backend);
  const SequenceNorm norm({.channels = 1, .sequences = {.frames_per_step = 2}, .eps = 0});
  LayerRun run = sequence_run(*backend, norm, {{kSteps, kStreams, 1}}, lengths);
  run.run.training = false;
  run.x().assign(12, 5);
  run.param(0) = {3}, run.param(1) = {1};
  run.buffer(0) = {1}, run.buffer(1) = {4};
  CHECK(run.forward() == std::vector<float>{7, 7, 7, 7, 0, 7, 7, 0, 7, 7, 0, 0});
}

TEST_CASE("sequence norm in training remembers the valid steps' statistics as PyTorch does", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Lengths lengths(*backend);
  const double momentum = GENERATE(0.1, 0.25);
  SequenceNormOptions options{.channels = 1, .sequences = {.frames_per_step = 2}};
  if (momentum != 0.1) options.momentum = static_cast<float>(momentum);  // 0.1 is the default
  const SequenceNorm norm(options);
  LayerRun run = sequence_run(*backend, norm, {{kSteps, kStreams, 1}}, lengths);
  run.x() = {1, 5, 3, /**/ 1, 99, 3, /**/ 3, 99, 9, /**/ 7, 99, 99};  // 99 behind an end; the others' mean is 4
  run.forward();
  CHECK(run.buffer(0)[0] == Approx(momentum * 4));
  CHECK(run.buffer(1)[0] == Approx(1 - momentum + momentum * 56 / 7));  // squares of -3, 1, -1, -3, -1, -1, 5, 3
}

TEST_CASE("lookahead sums what comes next, and nothing behind an end", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Lookahead lookahead(1, 3);
  LayerRun run(*backend, lookahead, {{4, 2, 1}});
  run.x() = {1, 10, 2, 20, 3, 0, 4, 0};  // the second stream has two steps
  run.param(0) = {1, 10, 100};
  CHECK(run.forward() == std::vector<float>{321, 210, 432, 20, 43, 0, 4, 0});
  const auto params = Lookahead(7, 16).params();
  REQUIRE(params.size() == 1);
  CHECK((params[0].shape == Shape{7, 1, 16} && params[0].init.value == 0.25f));
}

TEST_CASE("sequence layers say what does not fit, and what is missing", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CHECK_THROWS_WITH(SequenceMask({}).output_shape(std::vector{Shape{3, 4}}), Catch::Contains("[3, 4]"));
  CHECK_THROWS_WITH(SequenceReverse({}).output_shape(std::vector{Shape{3, 4}}), Catch::Contains("[3, 4]"));
  CHECK_THROWS_WITH(FramesToImage(1).output_shape(std::vector{Shape{3, 4}}), Catch::Contains("[3, 4]"));
  CHECK_THROWS_WITH(ImageToFrames().output_shape(std::vector{Shape{3, 4, 5}}), Catch::Contains("[3, 4, 5]"));
  CHECK_THROWS_WITH(SequenceNorm({.channels = 3}).output_shape(std::vector{Shape{3, 4, 5}}),
                    Catch::Contains("3 channels") && Catch::Contains("[3, 4, 5]"));
  CHECK_THROWS_WITH(Lookahead(3, 2).output_shape(std::vector{Shape{3, 4, 5}}), Catch::Contains("[3, 4, 5]"));
  CHECK_THROWS_AS(SequenceNorm({.channels = 0}), UserError);
  CHECK_THROWS_AS(Lookahead(0, 2), UserError);
  CHECK_THROWS_AS(Lookahead(2, 0), UserError);
  const SequenceMask mask({});
  LayerRun no_lengths(*backend, mask, {{2, 3, 1}});
  CHECK_THROWS_AS(no_lengths.forward(), InternalError);
}
