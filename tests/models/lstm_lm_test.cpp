#include "models/lstm_lm.h"

#include <algorithm>
#include <catch.hpp>

#include "tests/models/gradient_checks.h"
#include "tests/models/language_net.h"
#include "tests/models/network_facts.h"
#include "tests/support/backends.h"

using namespace dgc;

namespace {

constexpr LstmLmOptions kTied{.vocabulary = 13, .embedding = 5, .hidden = 5, .layers = 2};
constexpr LstmLmOptions kUntied{.vocabulary = 13, .embedding = 4, .hidden = 6, .layers = 1, .tied = false};

std::vector<std::string> names(const std::vector<ParamSpec>& specs) {
  std::vector<std::string> list;
  for (const ParamSpec& spec : specs) list.push_back(spec.name);
  return list;
}

int64_t parameters(const LstmLmOptions& options) {
  return ParamLayout(make_lstm_lm(options, 20).params()).parameters();
}

int index_of(const ParamLayout& layout, const std::string& name) {
  for (int i = 0; i < layout.size(); ++i) {
    if (layout.spec(i).name == name) return i;
  }
  FAIL("no parameter " << name);
  return -1;
}

}  // namespace

TEST_CASE("the paper's language model has 51,034,000 parameters, the tied matrix counted once", "[models]") {
  const LstmLmOptions paper{.vocabulary = 10000, .embedding = 1500, .hidden = 1500, .layers = 2};
  CHECK(parameters(paper) == 51034000);
  LstmLmOptions untied = paper;
  untied.tied = false;
  CHECK(parameters(untied) == 51034000 + 15000000);
  const Network net = make_lstm_lm(paper, 20);
  CHECK(net.shape(net.output(), 35) == Shape{35, 20, 1500});
  CHECK(net.loss().logits_shape(net.shape(net.output(), 35)) == Shape{700, 10000});
}

TEST_CASE("parameters and state have the names that PyTorch's modules would give them", "[models]") {
  const std::vector<std::string> rnn = {"rnn.weight_ih_l0", "rnn.weight_hh_l0", "rnn.bias_ih_l0", "rnn.bias_hh_l0",
                                        "rnn.weight_ih_l1", "rnn.weight_hh_l1", "rnn.bias_ih_l1", "rnn.bias_hh_l1"};
  std::vector<std::string> tied = {"encoder.weight"};
  tied.insert(tied.end(), rnn.begin(), rnn.end());
  std::vector<std::string> untied = tied;
  tied.push_back("decoder.bias");
  untied.insert(untied.end(), {"decoder.weight", "decoder.bias"});
  LstmLmOptions options = kTied;
  options.dropout = 0.5f;
  const Network net = make_lstm_lm(options, 3);
  CHECK(names(net.params()) == tied);
  CHECK(names(net.state()) == std::vector<std::string>{"rnn.h_l0", "rnn.c_l0", "rnn.h_l1", "rnn.c_l1"});
  CHECK(net.state()[0].shape == Shape{3, 5});
  CHECK(net.buffers().empty());
  options.tied = false;
  CHECK(names(make_lstm_lm(options, 3).params()) == untied);
  for (const ParamSpec& spec : net.params()) {
    CAPTURE(spec.name);
    CHECK(spec.init.value == (spec.name == "decoder.bias" ? 0.f : 0.1f));
    if (spec.name != "decoder.bias") CHECK(spec.init.kind == Init::Kind::uniform);
  }
}

TEST_CASE("a language model's weights start in the range of their own kind", "[models]") {
  LstmLmOptions options = kUntied;
  options.init = 0.3;
  const auto [rnn_init, expected] =
      GENERATE(table<std::optional<double>, float>({{std::nullopt, 0.3f}, {0.2, 0.2f}, {0, 1 / std::sqrt(6.f)}}));
  options.rnn_init = rnn_init;
  const Network net = make_lstm_lm(options, 3);
  for (const ParamSpec& spec : net.params()) {
    CAPTURE(spec.name);
    const bool is_rnn = spec.name.starts_with("rnn.");
    CHECK(spec.init.value == (spec.name == "decoder.bias" ? 0.f : is_rnn ? expected : 0.3f));
  }
}

TEST_CASE("a language model drops behind the encoder and behind each LSTM layer", "[models]") {
  LstmLmOptions options = kTied;
  options.dropout = 0.5f;
  CHECK(node_names(make_lstm_lm(options, 3)) ==
        std::vector<std::string>{"encoder", "encoder.drop", "rnn", "rnn.drop_l0", "rnn", "rnn.drop_l1"});
  CHECK(node_names(make_lstm_lm(kTied, 3)) == std::vector<std::string>{"encoder", "rnn", "rnn"});
}

TEST_CASE("gradients through a whole language model match finite differences", "[models][grad]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const bool tied = GENERATE(true, false);
  const Network network = make_lstm_lm(tied ? kTied : kUntied, 3);
  LanguageNet net(network, *backend, 4);
  net.train();
  CAPTURE(tied);
  check_gradients(net, 0.01, [&] { return net.evaluate().loss; });
}

TEST_CASE("words that a batch does not have: no gradient untied, only the decoder's tied", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const bool tied = GENERATE(true, false);
  const Network network = make_lstm_lm(tied ? kTied : kUntied, 3);
  LanguageNet net(network, *backend, 4);
  net.train();
  const int encoder = index_of(net.layout, "encoder.weight");
  const auto gradient = net.read(net.gradients, encoder);
  const auto width = static_cast<size_t>(net.layout.spec(encoder).shape[1]);
  const std::vector<int32_t> inputs(net.words().begin(), net.words().end() - 3);
  CHECK(std::ranges::count(inputs, 12) == 0);
  for (size_t word = 0; word < 13; ++word) {
    const bool seen = std::ranges::count(inputs, static_cast<int32_t>(word)) > 0;
    const auto first = gradient.begin() + static_cast<std::ptrdiff_t>(word * width);
    const bool all_zero =
        std::all_of(first, first + static_cast<std::ptrdiff_t>(width), [](float g) { return g == 0; });
    CAPTURE(tied, word, seen);
    CHECK(all_zero == (!tied && !seen));
  }
}

TEST_CASE("state carries over: two stretches of text are one, and a fresh state is none", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = make_lstm_lm(kTied, 3);
  LanguageNet whole(network, *backend, 8), half(network, *backend, 4);
  const double all = whole.evaluate().loss;
  const double first = half.evaluate().loss;
  half.next_words(whole.words(), 4);
  const double second = half.go_on().loss, forgetful = half.evaluate().loss;
  CHECK(8 * all == Approx(4 * first + 4 * second).epsilon(1e-6));  // the mean over rows of each
  CHECK(std::fabs(forgetful - second) > 1e-4);
}

TEST_CASE("backward announces every parameter once, the tied matrix last of all", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const bool tied = GENERATE(true, false);
  const Network network = make_lstm_lm(tied ? kTied : kUntied, 2);
  LanguageNet net(network, *backend, 3);
  check_announcements(net, network, [&](const auto& ready) { net.train(ready); });
}

TEST_CASE("a language model's step depends on nothing that lay in its memory, and repeats to the bit", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  LstmLmOptions options = kTied;
  options.dropout = GENERATE(0.f, 0.3f);
  const Network network = make_lstm_lm(options, 3);
  LanguageNet clean(network, *backend, 4), dirty(network, *backend, 4);
  for (int step = 0; step < 2; ++step) {
    dirty.dirty_memory();
    CHECK(dirty.train().loss == clean.train().loss);
    for (int i = 0; i < clean.layout.size(); ++i) {
      CHECK(dirty.read(dirty.gradients, i) == clean.read(clean.gradients, i));
    }
  }
}

TEST_CASE("a steady step of a language model asks for no more memory", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = make_lstm_lm({.vocabulary = 50, .embedding = 24, .hidden = 24, .dropout = 0.2}, 3);
  LanguageNet net(network, *backend, 6);
  net.train();
  net.evaluate();
  const size_t peak = backend->device()->peak_bytes();
  for (int step = 0; step < 3; ++step) {
    net.train();
    net.evaluate();
  }
  CHECK(backend->device()->peak_bytes() == peak);
}

TEST_CASE("dropout acts in training alone", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  LstmLmOptions options = kTied;
  options.dropout = 0.5f;
  const Network plain = make_lstm_lm(kTied, 3), dropped = make_lstm_lm(options, 3);
  LanguageNet without(plain, *backend, 4), with(dropped, *backend, 4);
  CHECK(with.evaluate().loss == without.evaluate().loss);
  CHECK(with.train().loss != without.train().loss);
}

TEST_CASE("logits of single rows are those that the loss sees", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = make_lstm_lm(kUntied, 3);
  LanguageNet net(network, *backend, 4);
  const auto loss = net.evaluate().loss;
  const auto all = net.logits(0, 12), some = net.logits(5, 2);
  CHECK(worst_error(some, std::vector<float>(all.begin() + 5 * 13, all.begin() + 7 * 13)) < 1e-6);
  double expected = 0;
  for (size_t row = 0; row < 12; ++row) {
    double sum = 0;
    for (size_t c = 0; c < 13; ++c) sum += std::exp(double{all[row * 13 + c]});
    expected += std::log(sum) - double{all[row * 13 + static_cast<size_t>(net.labels()[row])]};
  }
  CHECK(loss == Approx(expected / 12).epsilon(1e-6));
}

TEST_CASE("a language model says what does not fit", "[models]") {
  CHECK_THROWS_WITH(make_lstm_lm({.vocabulary = 10000, .embedding = 200, .hidden = 300}, 20),
                    "loss decoder: its weight [10000, 300] cannot be encoder.weight, which is [10000, 200]");
  CHECK_NOTHROW(make_lstm_lm({.vocabulary = 10000, .embedding = 200, .hidden = 300, .tied = false}, 20));
  CHECK_THROWS_WITH(make_lstm_lm({.vocabulary = 0}, 20), Catch::StartsWith("model.vocabulary: "));
  CHECK_THROWS_AS(make_lstm_lm({.vocabulary = 10, .embedding = 4, .hidden = 4, .dropout = 1}, 20), UserError);
}
