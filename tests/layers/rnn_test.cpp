#include "layers/rnn.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/layers/gradient_check.h"

using namespace dgc;

TEST_CASE("recurrent layers' gradients match finite differences", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto cell = GENERATE(RnnCell::lstm, RnnCell::gru, RnnCell::tanh);  // relu has kinks; tests/kernels has it
  const bool biases = GENERATE(true, false);
  const int64_t steps = GENERATE(1, 4), streams = GENERATE(1, 3), in = GENERATE(1, 6), hidden = GENERATE(1, 5);
  CAPTURE(backend->name(), static_cast<int>(cell), biases, steps, streams, in, hidden);
  const Rnn layer({.cell = cell, .in = in, .hidden = hidden, .biases = biases});
  CHECK(LayerRun(*backend, layer, {{steps, streams, in}}).worst_gradient_error() < 1e-3);
}

TEST_CASE("a recurrent layer's output does not depend on what comes later", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto cell = GENERATE(RnnCell::lstm, RnnCell::gru, RnnCell::tanh, RnnCell::relu);
  const Rnn layer({.cell = cell, .in = 3, .hidden = 4});
  LayerRun run(*backend, layer, {{5, 2, 3}});
  const auto before = run.forward();
  for (size_t i = 3 * 2 * 3; i < run.x().size(); ++i) run.x()[i] = -run.x()[i];
  const auto after = run.forward();
  CHECK(std::vector(after.begin(), after.begin() + 3 * 2 * 4) ==
        std::vector(before.begin(), before.begin() + 3 * 2 * 4));
  CHECK(after != before);
  run.run.training = false;
  CHECK(worst_error(run.forward(), after) < 1e-6);
}

TEST_CASE("recurrent layers add to their parameters' gradients, and skip dx when not wanted", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const bool biases = GENERATE(true, false);
  const Rnn layer({.cell = RnnCell::gru, .in = 5, .hidden = 4, .biases = biases});
  LayerRun run(*backend, layer, {{3, 2, 5}});
  run.backward();
  std::vector<std::vector<float>> once;
  for (size_t i = 0; i < layer.params().size(); ++i) once.push_back(run.dparam(i));
  run.backward({.dx = false, .dparams_start = 5});
  for (size_t i = 0; i < once.size(); ++i) {
    for (float& value : once[i]) value += 5;
    CHECK(worst_error(run.dparam(i), once[i]) < 1e-5);
  }
  CHECK(run.dx() == std::vector<float>(run.dx().size(), 99.f));
}

TEST_CASE("recurrent layers' parameters have PyTorch's names, shapes and range", "[layers]") {
  const auto gru = Rnn({.cell = RnnCell::gru, .in = 3, .hidden = 16, .suffix = "_l0_reverse"}).params();
  REQUIRE(gru.size() == 4);
  CHECK((gru[0].name == "weight_ih_l0_reverse" && gru[0].shape == Shape{48, 3}));
  CHECK((gru[1].name == "weight_hh_l0_reverse" && gru[1].shape == Shape{48, 16}));
  CHECK((gru[2].name == "bias_ih_l0_reverse" && gru[2].shape == Shape{48}));
  CHECK((gru[3].name == "bias_hh_l0_reverse" && gru[3].shape == Shape{48}));
  for (const ParamSpec& spec : gru) CHECK((spec.init.kind == Init::Kind::uniform && spec.init.value == 0.25f));
  const auto lstm = Rnn({.cell = RnnCell::lstm, .in = 3, .hidden = 16, .biases = false}).params();
  REQUIRE(lstm.size() == 2);
  CHECK((lstm[1].name == "weight_hh_l0" && lstm[1].shape == Shape{64, 16}));
  CHECK((Rnn({.cell = RnnCell::tanh, .in = 3, .hidden = 16}).params()[0].shape == Shape{16, 3}));
  CHECK(Rnn({.in = 3, .hidden = 16}).state(std::vector{Shape{5, 2, 3}}).empty());
}

TEST_CASE("recurrent layers other than the lstm carry h alone, and go on from it", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const auto cell = GENERATE(RnnCell::gru, RnnCell::tanh, RnnCell::relu);
  const Rnn layer({.cell = cell, .in = 3, .hidden = 4, .suffix = "_l2", .carries_state = true});
  const auto state = layer.state(std::vector{Shape{5, 2, 3}});
  REQUIRE(state.size() == 1);
  CHECK((state[0].name == "h_l2" && state[0].shape == Shape{2, 4}));
  LayerRun whole(*backend, layer, {{5, 2, 3}}), rest(*backend, layer, {{3, 2, 3}});
  const auto all = whole.forward();
  for (size_t i = 0; i < 4; ++i) rest.param(i) = whole.param(i);
  rest.x().assign(whole.x().begin() + 2 * 2 * 3, whole.x().end());
  rest.state(0).assign(all.begin() + 2 * 4, all.begin() + 2 * 2 * 4);  // h is the output of the second step
  CHECK(worst_error(rest.forward(), std::vector(all.begin() + 2 * 2 * 4, all.end())) < 1e-6);
  CHECK(worst_error(rest.next_state(0), whole.next_state(0)) < 1e-6);
}

TEST_CASE("rnn says what does not fit", "[layers]") {
  const Rnn layer({.in = 4, .hidden = 2});
  CHECK(layer.output_shape(std::vector{Shape{3, 7, 4}}) == Shape{3, 7, 2});
  CHECK_THROWS_WITH(layer.output_shape(std::vector{Shape{3, 7, 5}}),
                    Catch::Contains("[steps, streams, 4]") && Catch::Contains("[3, 7, 5]"));
  CHECK_THROWS_AS(Rnn({.in = 0, .hidden = 2}), UserError);
  CHECK_THROWS_AS(Rnn({.in = 2, .hidden = -1}), UserError);
}
