#include <catch.hpp>

#include "layers/rnn.h"
#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

namespace {

// As a language model has it.
RnnOptions lstm(int64_t in, int64_t hidden) {
  return {.cell = RnnCell::lstm, .in = in, .hidden = hidden, .carries_state = true};
}

}  // namespace

TEST_CASE("lstm gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t steps = GENERATE(1, 4), streams = GENERATE(1, 3), in = GENERATE(1, 6), hidden = GENERATE(1, 5);
  CAPTURE(backend->name(), steps, streams, in, hidden);
  const Rnn layer(lstm(in, hidden));
  CHECK(LayerRun(*backend, layer, {{steps, streams, in}}).worst_gradient_error(2e-2f) < 1e-3);  // curved
}

TEST_CASE("lstm goes on from its state", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Rnn layer(lstm(3, 4));
  LayerRun whole(*backend, layer, {{5, 2, 3}}), first(*backend, layer, {{2, 2, 3}}),
      second(*backend, layer, {{3, 2, 3}});
  for (LayerRun* part : {&first, &second}) {
    for (size_t i = 0; i < 4; ++i) part->param(i) = whole.param(i);
  }
  for (size_t i = 0; i < 2; ++i) first.state(i) = whole.state(i);
  first.x().assign(whole.x().begin(), whole.x().begin() + 2 * 2 * 3);
  second.x().assign(whole.x().begin() + 2 * 2 * 3, whole.x().end());
  auto y = first.forward();
  for (size_t i = 0; i < 2; ++i) second.state(i) = first.next_state(i);
  const auto rest = second.forward();
  y.insert(y.end(), rest.begin(), rest.end());
  CHECK(worst_error(y, whole.forward()) < 1e-6);
  for (size_t i = 0; i < 2; ++i) CHECK(worst_error(second.next_state(i), whole.next_state(i)) < 1e-6);
  // h is the last output, and a training pass leaves the same state as one in evaluation.
  const std::vector<float> last(y.end() - 2 * 4, y.end()), h = whole.next_state(0), c = whole.next_state(1);
  CHECK(worst_error(h, last) < 1e-6);
  whole.run.training = false;
  whole.forward();
  CHECK(whole.next_state(0) == h);
  CHECK(whole.next_state(1) == c);
}

TEST_CASE("lstm adds to the gradients of its parameters, and skips dx when not wanted", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Rnn layer(lstm(5, 4));
  LayerRun run(*backend, layer, {{3, 2, 5}});
  run.backward();
  std::vector<std::vector<float>> once;
  for (size_t i = 0; i < 4; ++i) once.push_back(run.dparam(i));
  CHECK(once[2] == once[3]);  // both biases have the same gradient
  run.backward({.dx = false, .dparams_start = 5});
  for (size_t i = 0; i < 4; ++i) {
    for (float& value : once[i]) value += 5;
    CHECK(worst_error(run.dparam(i), once[i]) < 1e-5);
  }
  CHECK(run.dx() == std::vector<float>(run.dx().size(), 99.f));
}

TEST_CASE("lstm parameters and state have PyTorch's names, shapes and range", "[layers]") {
  RnnOptions options = lstm(3, 16);
  options.suffix = "_l1";
  const Rnn layer(options);
  const auto params = layer.params();
  REQUIRE(params.size() == 4);
  CHECK((params[0].name == "weight_ih_l1" && params[0].shape == Shape{64, 3}));
  CHECK((params[1].name == "weight_hh_l1" && params[1].shape == Shape{64, 16}));
  CHECK((params[2].name == "bias_ih_l1" && params[2].shape == Shape{64}));
  CHECK((params[3].name == "bias_hh_l1" && params[3].shape == Shape{64}));
  for (const ParamSpec& spec : params) CHECK((spec.init.kind == Init::Kind::uniform && spec.init.value == 0.25f));
  options.init = 0.1f;
  CHECK(Rnn(options).params()[3].init.value == 0.1f);
  const auto state = layer.state(std::vector{Shape{35, 20, 3}});
  REQUIRE(state.size() == 2);
  CHECK((state[0].name == "h_l1" && state[0].shape == Shape{20, 16}));
  CHECK((state[1].name == "c_l1" && state[1].shape == Shape{20, 16}));
}

TEST_CASE("lstm says what does not fit", "[layers]") {
  const Rnn layer(lstm(4, 2));
  CHECK(layer.output_shape(std::vector{Shape{3, 7, 4}}) == Shape{3, 7, 2});
  CHECK_THROWS_WITH(layer.output_shape(std::vector{Shape{3, 4}}), Catch::Contains("[3, 4]"));
  CHECK_THROWS_WITH(layer.output_shape(std::vector{Shape{3, 7, 5}}),
                    Catch::Contains("[steps, streams, 4]") && Catch::Contains("[3, 7, 5]"));
  CHECK_THROWS_AS(Rnn(lstm(0, 2)), UserError);
  CHECK_THROWS_AS(Rnn(lstm(2, -1)), UserError);
}
