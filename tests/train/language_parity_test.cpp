#include <catch.hpp>

#include "dist/communicator.h"
#include "models/executor.h"
#include "models/lstm_lm.h"
#include "optim/optimizer.h"
#include "tests/support/backends.h"
#include "tests/support/torch_dump.h"

// The truth is PyTorch in float64 (tests/reference/language.py); PyTorch in float32 is off by at most 4e-6 there.
namespace dgc {
namespace {

constexpr int kParitySteps = 20, kPeriod = 11;

struct Case {
  std::string name;
  LstmLmOptions model;
  int64_t steps, streams;
};

const Case kTied{"tied", {.vocabulary = 37, .embedding = 12, .hidden = 12, .layers = 2}, 7, 4};
const Case kUntied{"untied", {.vocabulary = 50, .embedding = 9, .hidden = 17, .layers = 1, .tied = false}, 5, 3};

// language.py's model and text, on a backend.
class LanguageModel {
 public:
  LanguageModel(Backend& on, const Case& c)
      : test_case(c),
        backend(on),
        net(make_lstm_lm(c.model, c.streams)),
        params(net.params()),
        state_layout(net.state()),
        buffers_layout(net.buffers()),
        weights(on.device(), params),
        gradients(on.device(), params),
        state(on.device(), state_layout),
        buffers(on.device(), buffers_layout),
        executor(net, on, c.steps, Executor::Mode::training),
        memory(on.device(), executor.activation_bytes()),
        rows(c.steps * c.streams),
        tokens(on.device(), static_cast<size_t>(rows) * sizeof(int32_t)),
        labels(on.device(), static_cast<size_t>(rows) * sizeof(int32_t)),
        stats(on.device(), 3 * sizeof(double)) {
    executor.attach(memory.data());
    for (int i = 0; i < params.size(); ++i) {
      std::vector<float> values;
      for (int64_t j = 0; j < params.numel(i); ++j) {
        values.push_back(hashed::uniform(params.spec(i).name, static_cast<uint64_t>(j), 0.4f));
      }
      on.device()->copy_in(weights.view(i).data, values.data(), values.size() * sizeof(float));
    }
  }

  // Forward, loss and backward. Returns the mean loss.
  float run(int step) {
    load(tokens, step * test_case.steps);
    load(labels, step * test_case.steps + 1);
    const ConstView x(tokens.data(), {test_case.steps, test_case.streams}, DType::i32);
    const RunContext context{.state = &state};
    y = executor.forward(weights, buffers, x, context);
    if (step == 0) first_output = read(y);
    backend.device()->zero(gradients.data(), gradients.bytes());
    executor.loss(weights, gradients,
                  {.labels = {labels.data(), {rows}, DType::i32},
                   .stats = static_cast<double*>(stats.data()),
                   .gradient_scale = 1.f / static_cast<float>(rows)});
    executor.backward(weights, gradients, x, context, [](int) {});
    double sums[3];
    backend.device()->copy_out(sums, stats.data(), sizeof(sums));
    return static_cast<float>(sums[0] / static_cast<double>(rows));
  }

  std::vector<float> read(ConstView view) const {
    std::vector<float> values(static_cast<size_t>(view.numel()));
    backend.device()->copy_out(values.data(), view.data, values.size() * sizeof(float));
    return values;
  }

  const Case& test_case;
  Backend& backend;
  Network net;
  ParamLayout params, state_layout, buffers_layout;
  Arena weights, gradients, state, buffers;
  Executor executor;
  Buffer memory;
  int64_t rows;
  Buffer tokens, labels, stats;
  View y;
  std::vector<float> first_output;

 private:
  void load(const Buffer& to, int64_t first) const {
    const auto vocabulary = static_cast<uint32_t>(test_case.model.vocabulary - 3);
    std::vector<int32_t> words;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t time = first + i / test_case.streams, stream = i % test_case.streams;
      const auto number = static_cast<uint64_t>(time % kPeriod * test_case.streams + stream);
      words.push_back(static_cast<int32_t>(hashed::bits(test_case.name + ".text", number) % vocabulary));
    }
    backend.device()->copy_in(to.data(), words.data(), to.bytes());
  }
};

}  // namespace

TEST_CASE("20 clipped SGD steps of a language model with carried state agree with PyTorch") {
  const auto factory = GENERATE(from_range(backends()));
  const bool tied = GENERATE(true, false);
  const auto backend = factory.make();
  const Case& c = tied ? kTied : kUntied;
  LanguageModel model(*backend, c);
  const auto communicator = make_single_communicator();
  const auto optimizer = make_sgd({.backend = *backend, .communicator = *communicator, .layout = model.params},
                                  {.momentum = 0, .weight_decay = 0, .nesterov = false, .clip_norm = 0.1});
  StepRecord record(*backend, *communicator, 1);
  const Dump dump("lstm_lm.safetensors");
  const auto load = [&](const std::string& name, const Shape& shape) { return dump.load(c.name + "." + name, shape); };
  const auto losses = load("loss", {kParitySteps}), norms = load("norm", {kParitySteps});

  for (int step = 0; step < kParitySteps; ++step) {
    INFO(c.name << ", step " << step + 1);
    const float loss = model.run(step);
    CHECK(apart({&loss, 1}, std::span(losses).subspan(static_cast<size_t>(step), 1)) < kTolerance);
    const float norm = norm_of(model.read({model.gradients.data(), {model.gradients.extent()}}));  // gaps are 0
    CHECK(apart({&norm, 1}, std::span(norms).subspan(static_cast<size_t>(step), 1)) < kTolerance);
    CHECK(norm > 0.15f);  // clipping matters
    if (step == 0) {
      CHECK(apart(model.first_output, load("y", model.y.shape)) < kTolerance);
      for (int i = 0; i < model.params.size(); ++i) {
        INFO(model.params.spec(i).name);
        const auto truth = load("grad." + model.params.spec(i).name, model.params.spec(i).shape);
        CHECK(apart(model.read(model.gradients.view(i)), truth) < kTolerance);
      }
    }
    float* const gradients = model.gradients.data();
    record.begin({.step = static_cast<uint64_t>(step), .lr = 20});
    record.measure({&gradients, 1}, model.gradients.extent());
    record.judge();
    optimizer->step({.gradients = {&gradients, 1}, .weights = model.weights, .record = record});

    for (int i = 0; i < model.params.size(); ++i) {
      const std::string& name = model.params.spec(i).name;
      INFO(name);
      const auto weights = model.read(model.weights.view(i));
      const auto truth = load("norm." + name, {kParitySteps});
      const float size = norm_of(weights);
      CHECK(apart({&size, 1}, std::span(truth).subspan(static_cast<size_t>(step), 1)) < kTolerance);
      const std::vector<float> sample = sample_of(weights);
      const auto samples = load("sample." + name, {kParitySteps, static_cast<int64_t>(sample.size())});
      CHECK(apart(sample, std::span(samples).subspan(static_cast<size_t>(step) * sample.size(), sample.size())) <
            kTolerance);
    }
  }
  // PyTorch has h of all layers in one tensor, and c in another.
  const Shape all{c.model.layers, c.streams, c.model.hidden};
  const auto h = load("h", all), c_state = load("c", all);
  const auto layer_size = static_cast<size_t>(c.streams * c.model.hidden);
  for (int layer = 0; layer < static_cast<int>(c.model.layers); ++layer) {
    const size_t at = static_cast<size_t>(layer) * layer_size;
    CHECK(apart(model.read(model.state.view(2 * layer)), std::span(h).subspan(at, layer_size)) < kTolerance);
    CHECK(apart(model.read(model.state.view(2 * layer + 1)), std::span(c_state).subspan(at, layer_size)) < kTolerance);
  }
}

}  // namespace dgc
