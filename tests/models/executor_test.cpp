#include "models/executor.h"

#include <catch.hpp>

#include "layers/linear.h"
#include "models/lstm_lm.h"
#include "models/resnet.h"
#include "tests/models/gradient_checks.h"
#include "tests/models/small_net.h"
#include "tests/support/backends.h"

using namespace dgc;

namespace {

// Keeps every ReLU far from its kink, where finite differences mean nothing: each second channel is always open, the
// others always closed.
void open_or_close_relus(NetRun& net) {
  for (int i = 0; i < net.layout.size(); ++i) {
    const std::string& name = net.layout.spec(i).name;
    if (name == "stem.bn.weight" || name == "first.bn.weight") net.write(net.weights, i, {0.5f, 0.25f, -0.5f, 0.5f});
    if (name == "stem.bn.bias") net.write(net.weights, i, {4, -4, 3, -5});
    if (name == "first.bn.bias") net.write(net.weights, i, {-9, 4, 4, -5});
    if (name == "left.conv.weight" || name == "second.conv.weight") {
      auto w = net.read(net.weights, i);
      for (float& value : w) value *= 2;
      net.write(net.weights, i, w);
    }
  }
}

}  // namespace

TEST_CASE("gradients through a whole residual network match finite differences", "[models][grad]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = residual_net();
  NetRun net(network, *backend, 3);
  open_or_close_relus(net);
  net.forward();
  net.backward();
  check_gradients(net, 0.02, [&] { return net.loss(); });
}

TEST_CASE("backward announces every parameter once, last layer first, with its final gradient", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = residual_net();
  NetRun net(network, *backend, 2);
  net.forward();
  check_announcements(net, network, [&](const auto& ready) { net.backward(ready); });
}

TEST_CASE("backward adds to the gradients", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = residual_net();
  NetRun net(network, *backend, 2);
  net.forward();
  net.backward();
  const auto once = net.all_gradients();
  net.forward();
  net.backward();
  auto twice = once;
  for (float& g : twice) g *= 2;
  CHECK(worst_error(net.all_gradients(), twice) < 1e-5);
}

TEST_CASE("a step depends on nothing that lay in its memory before", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto depth = GENERATE(0, 8);  // 0: the small net above
  const Network network = depth == 0 ? residual_net() : make_resnet({.depth = depth, .width = 4}, {8, 8, 3});
  CAPTURE(depth);
  NetRun clean(network, *backend, 3), dirty(network, *backend, 3);
  for (int step = 0; step < 2; ++step) {
    dirty.dirty_memory();
    CHECK(dirty.output() == clean.output());
    clean.backward();
    dirty.backward();
    CHECK(dirty.all_gradients() == clean.all_gradients());
  }
}

TEST_CASE("evaluation and training compute the same where no layer tells them apart", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  Network network({9, 8, 3});
  network.add("conv", std::make_unique<Conv2d>(Conv2dOptions{.in = 3, .out = 5, .kernel = 3, .pad = 1}), {0});
  network.add("relu", std::make_unique<ActivationLayer>(Activation::relu), {1});
  network.add("max", std::make_unique<Pool>(PoolOptions{PoolKind::max, 3, 2, 1}), {2});
  network.add("average", std::make_unique<GlobalPool>(), {3});
  network.add("fc", std::make_unique<Linear>(LinearOptions{5, 4}), {4});
  NetRun training(network, *backend, 6), evaluation(network, *backend, 6, Executor::Mode::evaluation);
  const auto y = training.output();
  CHECK(y.size() == 24);
  CHECK(evaluation.output() == y);
  CHECK(evaluation.executor.activation_bytes() < training.executor.activation_bytes());
}

TEST_CASE("in evaluation BatchNorm uses its statistics and leaves them alone", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = residual_net();
  NetRun training(network, *backend, 4), evaluation(network, *backend, 4, Executor::Mode::evaluation);
  const auto fresh = evaluation.read(evaluation.buffers, 0);
  CHECK(evaluation.output() != training.output());
  CHECK(evaluation.read(evaluation.buffers, 0) == fresh);
  CHECK(training.read(training.buffers, 0) != fresh);

  // Trained on one batch long enough, the running statistics are that batch's, but for the unbiased variance.
  for (int i = 0; i < 200; ++i) training.forward();
  for (int i = 0; i < training.statistics.size(); ++i)
    evaluation.write(evaluation.buffers, i, training.read(training.buffers, i));
  CHECK(worst_error(evaluation.output(), training.output()) < 0.05);
}

TEST_CASE("memory is reused: a chain in evaluation needs two tensors, whatever its length", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto length = GENERATE(2, 3, 20);
  Network network({4, 4, 16});
  for (int i = 0; i < length; ++i) {
    network.add("conv" + std::to_string(i), std::make_unique<Conv2d>(Conv2dOptions{.in = 16, .out = 16}), {i});
  }
  const Executor executor(network, *backend, 3, Executor::Mode::evaluation);
  CHECK(executor.activation_bytes() == 2 * 3 * 4 * 4 * 16 * sizeof(float));
}

TEST_CASE("one executor serves several workers in turn", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = residual_net();
  NetRun first(network, *backend, 2), second(network, *backend, 2);
  initialize(second.weights, 99);
  const auto own = second.output();
  second.backward();
  const OnDevice x(*backend, random_floats(network.shape(0, 2).numel(), 1));
  const View y = first.executor.forward(second.weights, second.buffers, {x.view().data, network.shape(0, 2)}, {});
  std::vector<float> borrowed(own.size());
  backend->device()->copy_out(borrowed.data(), y.data, borrowed.size() * sizeof(float));
  CHECK(borrowed == own);
  CHECK(first.output() != own);
}

TEST_CASE("an executor that trains is not planned for a BatchNorm over one row, one that evaluates is", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  Network network({3});
  network.append("bn", std::make_unique<BatchNorm>(BatchNormOptions{.channels = 3}));
  CHECK_THROWS_WITH(Executor(network, *backend, 1, Executor::Mode::training),
                    Catch::Contains("a BatchNorm of 3 channels has one value of each to normalise"));
  CHECK_NOTHROW(Executor(network, *backend, 2, Executor::Mode::training));
  CHECK_NOTHROW(Executor(network, *backend, 1, Executor::Mode::evaluation));
}

TEST_CASE("an executor refuses what it was not planned for", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = residual_net();
  NetRun training(network, *backend, 2), evaluation(network, *backend, 2, Executor::Mode::evaluation);
  CHECK_THROWS_AS(evaluation.executor.backward(evaluation.weights, evaluation.gradients, {}, {}, {}), InternalError);
  training.run.training = false;
  CHECK_THROWS_WITH(training.forward(), Catch::Contains("another mode"));
  CHECK_THROWS_WITH(training.executor.forward(training.weights, training.buffers, {nullptr, {3, 5, 4, 2}}, {}),
                    Catch::Contains("[3, 5, 4, 2]"));
  Executor unattached(network, *backend, 2, Executor::Mode::training);
  CHECK_THROWS_WITH(unattached.forward(training.weights, training.buffers, {nullptr, {2, 5, 4, 2}}, {}),
                    Catch::Contains("attach"));
  CHECK_THROWS_AS(Executor(network, *backend, 0, Executor::Mode::training), InternalError);
  CHECK_THROWS_AS(Executor(Network({1}), *backend, 1, Executor::Mode::training), InternalError);
}

TEST_CASE("a network of tokens takes i32 only, and one with a state needs it", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = make_lstm_lm({.vocabulary = 9, .embedding = 3, .hidden = 3, .layers = 1}, 2);
  NetRun net(network, *backend, 4, Executor::Mode::evaluation);
  const Buffer tokens(backend->device(), 8 * sizeof(int32_t));
  const ConstView right(tokens.data(), {4, 2}, DType::i32), wrong(tokens.data(), {4, 2}, DType::f32);
  const ParamLayout layout(network.state());
  const Arena state(backend->device(), layout);
  const RunContext run{.training = false, .state = &state};
  CHECK_NOTHROW(net.executor.forward(net.weights, net.buffers, right, run));
  CHECK_THROWS_WITH(net.executor.forward(net.weights, net.buffers, wrong, run), Catch::Contains("[4, 2]"));
  CHECK_THROWS_WITH(net.executor.forward(net.weights, net.buffers, right, {.training = false}),
                    Catch::Contains("needs a state"));
  CHECK_THROWS_AS(net.executor.loss(net.weights, net.gradients, {}), InternalError);  // planned for evaluation
  CHECK_THROWS_AS(net.executor.logits(net.weights, {nullptr, {9, 9}}), InternalError);
}

TEST_CASE("the loss of a network of images is cross entropy of its output", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = residual_net();
  NetRun net(network, *backend, 2), other(network, *backend, 2);
  const Buffer labels(backend->device(), 2 * sizeof(int32_t)), stats(backend->device(), 6 * sizeof(double));
  const ConstView label(labels.data(), {2}, DType::i32);
  auto* const sums = static_cast<double*>(stats.data());
  net.forward();
  net.executor.loss(net.weights, net.gradients, {.labels = label, .stats = sums, .gradient_scale = 0.5f});
  const View y = other.forward();
  backend->softmax_cross_entropy({.rows = 2, .classes = 3, .gradient_scale = 0.5f}, y, label,
                                 other.executor.output_gradient(), sums + 3);
  double host[6];
  backend->device()->copy_out(host, sums, sizeof(host));
  CHECK(host[0] == host[3]);
  std::vector<float> ours(6), theirs(6);
  backend->device()->copy_out(ours.data(), net.executor.output_gradient().data, 6 * sizeof(float));
  backend->device()->copy_out(theirs.data(), other.executor.output_gradient().data, 6 * sizeof(float));
  CHECK(ours == theirs);
}

namespace {

// y = a + b, whose gradients may both lie in dy's memory: legal as long as nobody adds to one of them.
class Sum final : public Layer {
 public:
  int inputs() const override { return 2; }
  Shape output_shape(std::span<const Shape> in) const override { return in[0]; }
  bool gradient_in_place(int) const override { return true; }
  void forward(const ForwardArgs&) const override {}
  void backward(const BackwardArgs&) const override {}
};

}  // namespace

TEST_CASE("a plan in which adding would spoil another gradient is refused", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const auto tanh = [] { return std::make_unique<ActivationLayer>(Activation::tanh); };
  Network network({4});
  network.add("weights", std::make_unique<Linear>(LinearOptions{4, 4}), {0});  // without any, nobody asks for gradients
  network.add("a", tanh(), {1});
  network.add("b", tanh(), {1});
  network.add("c", tanh(), {2});
  network.add("a + b", std::make_unique<Sum>(), {2, 3});  // a and b share memory, and then c adds to a
  network.add("all", std::make_unique<Sum>(), {4, 5});
  CHECK_THROWS_WITH(Executor(network, *backend, 1, Executor::Mode::training), Catch::Contains("share memory"));

  Network dead_end({4});
  dead_end.add("a", std::make_unique<Linear>(LinearOptions{4, 4}), {0});
  dead_end.add("nobody reads this", tanh(), {1});
  dead_end.add("c", tanh(), {1});
  CHECK_THROWS_WITH(Executor(dead_end, *backend, 1, Executor::Mode::training), Catch::Contains("nobody reads this"));
}

namespace {

class Doubled final : public Layer {
 public:
  Shape output_shape(std::span<const Shape> in) const override { return in[0]; }
  void forward(const ForwardArgs& f) const override {
    f.backend.device()->copy(f.y.data, f.x[0].data, f.y.bytes());
    f.backend.add(f.x[0], f.y);
  }
  void backward(const BackwardArgs&) const override { throw InternalError("nobody wants this gradient"); }
};

}  // namespace

TEST_CASE("layers before the first parameter are not asked for gradients", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  Network plain({4}), doubled({4});
  plain.add("fc", std::make_unique<Linear>(LinearOptions{4, 3}), {0});
  doubled.add("twice", std::make_unique<Doubled>(), {0});
  doubled.add("fc", std::make_unique<Linear>(LinearOptions{4, 3}), {1});
  NetRun once(plain, *backend, 2), twice(doubled, *backend, 2);
  once.forward(), once.backward();
  twice.forward(), twice.backward();
  auto expected = once.read(once.gradients, 0);
  for (float& value : expected) value *= 2;
  CHECK(twice.read(twice.gradients, 0) == expected);
}

TEST_CASE("memory of another network is refused, whichever it is", "[models]") {
  const auto backend = GENERATE(from_range(backends())).make();
  const Network network = residual_net();
  NetRun net(network, *backend, 3);
  const auto with_more_rows = [](const std::vector<ParamSpec>& specs) {
    std::vector<ParamSpec> other = specs;
    ++other.back().shape[0];
    return ParamLayout(other);
  };
  const ParamLayout other_params = with_more_rows(network.params()), other_buffers = with_more_rows(network.buffers());
  const ParamLayout fewer({network.params().front()});
  const Arena wrong(backend->device(), other_params), wrong_buffers(backend->device(), other_buffers);
  const Arena few(backend->device(), fewer);
  const OnDevice x(*backend, random_floats(net.executor.batch() * 5 * 4 * 2, 1));
  const ConstView input{x.view().data, network.shape(0, 3)};
  const auto forward = [&](const Arena& weights, const Arena& buffers, ConstView read) {
    net.executor.forward(weights, buffers, read, net.run);
  };
  CHECK_NOTHROW(forward(net.weights, net.buffers, input));
  CHECK_THROWS_WITH(forward(wrong, net.buffers, input), Catch::Contains("without this network's fc."));
  CHECK_THROWS_WITH(forward(few, net.buffers, input), Catch::Contains("without this network's left.conv.weight"));
  CHECK_THROWS_WITH(forward(net.weights, wrong_buffers, input), Catch::Contains("without this network's second.bn."));
  CHECK_THROWS_WITH(forward(net.weights, net.buffers, {x.view().data, {3, 5, 4, 1}}),
                    Catch::Contains("does not fit the network"));

  const auto backward = [&](const Arena& gradients, ConstView read) {
    net.executor.backward(net.weights, gradients, read, net.run, [](int) {});
  };
  CHECK_THROWS_WITH(backward(wrong, input), Catch::Contains("without this network's fc."));
  CHECK_THROWS_WITH(backward(net.gradients, {x.view().data, network.shape(0, 2)}),
                    Catch::Contains("does not fit the network"));

  const Buffer memory(backend->device(), 64);
  const auto loss = [&](int64_t labels) {
    net.executor.loss(net.weights,
                      {.labels = {memory.data(), {labels}, DType::i32}, .stats = static_cast<double*>(memory.data())});
  };
  CHECK_THROWS_WITH(loss(2), Catch::Contains("a label for each row"));
  CHECK_THROWS_WITH(loss(4), Catch::Contains("a label for each row"));
  CHECK_THROWS_WITH(net.executor.logits(net.weights, {memory.data(), {4, 4}}), Catch::Contains("not [4, 4]"));
}
