#include "models/deep_speech.h"

#include <algorithm>
#include <catch.hpp>

#include "tests/models/gradient_checks.h"
#include "tests/models/network_facts.h"
#include "tests/models/speech_net.h"
#include "tests/support/backends.h"

using namespace dgc;

namespace {

// Two convolutions, from 9 frequencies to 3 channels of 2.
DeepSpeechOptions small(RnnCell cell, bool bidirectional) {
  return {.frequencies = 9,
          .classes = 5,
          .convolutions = {.channels = {2, 3},
                           .kernel_frames = {3, 3},
                           .kernel_frequencies = {4, 2},
                           .stride_frames = {2, 1},
                           .stride_frequencies = {2, 1}},
          .cell = cell,
          .layers = 2,
          .hidden = 4,
          .bidirectional = bidirectional,
          .lookahead = 3};
}

const Utterances kUtterances{.lengths = {11, 4, 9}, .labels = {{1, 2, 2}, {4}, {3, 1}}};

int64_t parameters(const DeepSpeechOptions& options) {
  return ParamLayout(make_deep_speech(options, 2).params()).parameters();
}

}  // namespace

TEST_CASE("the paper's Deep Speech has 117,461,168 parameters, 16,992 of them in vectors", "[models]") {
  const Network net = make_deep_speech({}, 20);
  const ParamLayout layout(net.params());
  CHECK(layout.parameters() == 117461168);
  CHECK(layout.small_parameters() == 16992);
  CHECK(layout.spec(0).shape == Shape{32, 1, 11, 41});
  // 672 numbers go into the first recurrent layer; a second of sound is 99 frames, and half as many steps.
  const auto shapes = net.shapes(99);
  CHECK(std::ranges::count(shapes, Shape{50, 20, 672}) == 2);  // for one direction, and turned for the other
  CHECK(shapes.back() == Shape{50, 20, 29});
}

TEST_CASE("parameters of other shapes of the model, added up by hand", "[models]") {
  const int64_t convolutions = 32 * 41 * 11 + 32 * 32 * 21 * 11 + 2 * 3 * 32;  // weights; bias, scale and shift
  const DeepSpeechOptions an4{.cell = RnnCell::lstm, .layers = 5, .hidden = 800};
  const int64_t lstm = 2 * 4 * 800 * (672 + 800) + 4 * (2 * 4 * 800 * 1600 + 2 * 800) + 2 * 800 + 29 * 800;
  CHECK(parameters(an4) == convolutions + lstm);
  const DeepSpeechOptions one_way{.layers = 3, .hidden = 100, .bias = true, .bidirectional = false, .lookahead = 20};
  const int64_t gru = 300 * (672 + 100 + 2) + 2 * (300 * 202 + 200) + 20 * 100 + 200 + 29 * 100;
  CHECK(parameters(one_way) == convolutions + gru);
}

TEST_CASE("the model's parameters have names that say where they belong", "[models]") {
  std::vector<std::string> names;
  const Network net = make_deep_speech(small(RnnCell::gru, true), 1);
  for (const ParamSpec& spec : net.params()) names.push_back(spec.name);
  CHECK(names == std::vector<std::string>{"conv1.weight",
                                          "conv1.bias",
                                          "conv1.norm.weight",
                                          "conv1.norm.bias",
                                          "conv2.weight",
                                          "conv2.bias",
                                          "conv2.norm.weight",
                                          "conv2.norm.bias",
                                          "rnns.0.rnn.weight_ih_l0",
                                          "rnns.0.rnn.weight_hh_l0",
                                          "rnns.0.rnn.weight_ih_l0_reverse",
                                          "rnns.0.rnn.weight_hh_l0_reverse",
                                          "rnns.1.norm.weight",
                                          "rnns.1.norm.bias",
                                          "rnns.1.rnn.weight_ih_l0",
                                          "rnns.1.rnn.weight_hh_l0",
                                          "rnns.1.rnn.weight_ih_l0_reverse",
                                          "rnns.1.rnn.weight_hh_l0_reverse",
                                          "fc.norm.weight",
                                          "fc.norm.bias",
                                          "fc.weight"});
}

TEST_CASE("a speech model's layers, in both directions and in one", "[models]") {
  const std::vector<std::string> before = {"frames", "conv1",      "conv1.norm", "conv1.clip",
                                           "conv2",  "conv2.norm", "conv2.clip", "steps"};
  std::vector<std::string> both = before, one = before;
  both.insert(both.end(),
              {"rnns.0.rnn", "rnns.0.turn", "rnns.0.rnn", "rnns.0.turn_back", "rnns.0.sum", "rnns.1.norm", "rnns.1.rnn",
               "rnns.1.turn", "rnns.1.rnn", "rnns.1.turn_back", "rnns.1.sum", "fc.norm", "fc"});
  one.insert(one.end(),
             {"rnns.0.rnn", "rnns.1.norm", "rnns.1.rnn", "mask", "lookahead", "lookahead.clip", "fc.norm", "fc"});
  const Network net = make_deep_speech(small(RnnCell::gru, true), 2);
  CHECK(node_names(net) == both);
  CHECK(node_names(make_deep_speech(small(RnnCell::gru, false), 2)) == one);
  // Tensor 8 is what "steps" gives. The sum takes one direction as it is and the other one turned back.
  const auto inputs = [&](size_t node) { return net.nodes()[node].inputs; };
  CHECK((inputs(8) == std::vector{8} && inputs(9) == std::vector{8} && inputs(10) == std::vector{10}));
  CHECK((inputs(11) == std::vector{11} && inputs(12) == std::vector{9, 12}));
}

TEST_CASE("gradients through a whole speech model match finite differences", "[models][grad]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto cell = GENERATE(RnnCell::lstm, RnnCell::gru);
  const Network network = make_deep_speech(small(cell, true), 3);
  SpeechNet net(network, *backend, 12, kUtterances);
  const auto result = net.train();
  CHECK((result.counted == 3 && result.left_out == 0));
  std::vector<std::vector<float>> gradients;
  for (int i = 0; i < net.layout.size(); ++i) gradients.push_back(net.read(net.gradients, i));
  for (int i = 0; i < net.layout.size(); ++i) {
    const std::string& name = net.layout.spec(i).name;
    const std::vector<float>& analytic = gradients[static_cast<size_t>(i)];
    auto w = net.read(net.weights, i);
    double worst = 0, largest = 0;
    for (const float g : analytic) largest = std::fmax(largest, std::fabs(double{g}));
    for (size_t e = 0; e < w.size(); e += 1 + w.size() / 4) {  // some of each tensor
      const double numeric = slope(net, i, w, e, [&] { return net.train().loss; });
      worst = std::fmax(worst, std::fabs(numeric - double{analytic[e]}));
    }
    CAPTURE(static_cast<int>(cell), name, largest);
    // A shift before a norm changes nothing.
    const bool no_gradient = name == "conv1.bias" || name == "conv2.bias";
    if (!no_gradient) CHECK(largest > 0.01);
    CHECK(worst < 0.01 * std::fmax(largest, 0.1));
  }
}

TEST_CASE("padding, and what lies in it, changes nothing", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto cell = GENERATE(RnnCell::lstm, RnnCell::gru, RnnCell::relu);
  const bool bidirectional = GENERATE(true, false);
  CAPTURE(static_cast<int>(cell), bidirectional);
  const Network network = make_deep_speech(small(cell, bidirectional), 3);
  SpeechNet tight(network, *backend, 11, kUtterances), wide(network, *backend, 20, kUtterances, 1000.f);
  CHECK(wide.train().loss == Approx(tight.train().loss).epsilon(1e-5));
  for (int i = 0; i < tight.layout.size(); ++i) {
    CAPTURE(tight.layout.spec(i).name);
    CHECK(worst_error(wide.read(wide.gradients, i), tight.read(tight.gradients, i)) < 1e-3);
  }
  CHECK(wide.evaluate().loss == Approx(tight.evaluate().loss).epsilon(1e-5));  // the running statistics too
}

TEST_CASE("in evaluation an utterance gives what it gives alone", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const bool bidirectional = GENERATE(true, false);
  const Network network = make_deep_speech(small(RnnCell::gru, bidirectional), 3),
                one = make_deep_speech(small(RnnCell::gru, bidirectional), 1);
  SpeechNet all(network, *backend, 12, kUtterances);
  double sum = 0;
  const double together = all.evaluate().loss;
  for (int64_t s = 0; s < 3; ++s) {
    const auto own = static_cast<size_t>(s);
    SpeechNet alone(one, *backend, kUtterances.lengths[own],
                    {.lengths = {kUtterances.lengths[own]}, .labels = {kUtterances.labels[own]}});
    sum += alone.evaluate().loss;
    auto expected = alone.logits(0), logits = all.logits(s);
    CHECK(expected.size() == static_cast<size_t>((kUtterances.lengths[own] + 1) / 2 * 5));
    expected.resize(logits.size());  // 0 behind the end
    CHECK(worst_error(logits, expected) < 1e-4);
  }
  CHECK(together == Approx(sum).epsilon(1e-5));
}

TEST_CASE("an utterance whose labels do not fit is left out, and the others learn", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = make_deep_speech(small(RnnCell::gru, true), 3);
  SpeechNet net(network, *backend, 12, {.lengths = {11, 4, 0}, .labels = {{1, 2, 2}, {4, 4, 1}, {}}});
  const auto result = net.train();
  CHECK((result.counted == 1 && result.left_out == 1));
  CHECK(std::isfinite(result.loss));
  for (int i = 0; i < net.layout.size(); ++i) {
    for (const float g : net.read(net.gradients, i)) CHECK(std::isfinite(g));
  }
}

TEST_CASE("a speech model's step depends on nothing that lay in its memory, and repeats to the bit", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const bool bidirectional = GENERATE(true, false);
  const Network network = make_deep_speech(small(RnnCell::gru, bidirectional), 3);
  SpeechNet net(network, *backend, 12, kUtterances);
  const double loss = net.train().loss;
  std::vector<std::vector<float>> once;
  for (int i = 0; i < net.layout.size(); ++i) once.push_back(net.read(net.gradients, i));
  net.dirty_memory();
  int announced = net.layout.size();
  CHECK(net.train([&](int first) { announced = first; }).loss == loss);
  CHECK(announced == 0);
  for (int i = 0; i < net.layout.size(); ++i) {
    CHECK(net.read(net.gradients, i) == once[static_cast<size_t>(i)]);
  }
}

TEST_CASE("a speech model says what does not fit", "[models]") {
  DeepSpeechOptions options = small(RnnCell::gru, true);
  // 2^60 frames a step, then 2^72, which is 0 as an int64_t.
  for (const size_t count : {size_t{5}, size_t{6}}) {
    const std::vector<int64_t> ones(count, 1);
    options.convolutions = {ones, ones, ones, std::vector<int64_t>(count, 4096), ones};
    CHECK_THROWS_WITH(make_deep_speech(options, 1), Catch::Contains("model.convolutions.stride_frames"));
  }
  options.convolutions = {{1, 1}, {1, 1}, {1, 1}, {4096, 256}, {1, 1}};  // as many as there may be
  CHECK_NOTHROW(make_deep_speech(options, 1));
  options = small(RnnCell::gru, true);
  options.frequencies = 3;
  CHECK_THROWS_WITH(make_deep_speech(options, 1), Catch::Contains("conv1") && Catch::Contains("3x4"));
  options = small(RnnCell::gru, true);
  options.hidden = 0;
  CHECK_THROWS_AS(make_deep_speech(options, 1), UserError);
}
