#include <catch.hpp>

#include "dist/communicator.h"
#include "models/alexnet.h"
#include "models/resnet.h"
#include "optim/optimizer.h"
#include "tests/support/backends.h"
#include "tests/support/hashed_model.h"
#include "tests/support/torch_dump.h"

// The truth is PyTorch in float64 (tests/reference/make_dumps.py). PyTorch in float32 is off by at most 1e-5 there
// (tests/reference/study.py): inputs are chosen so that rounding flips no ReLU.
namespace dgc {
namespace {

void check_statistics(const Dump& dump, const std::string& prefix, const HashedModel& model) {
  for (int i = 0; i < model.statistics.size(); ++i) {
    const ParamSpec& spec = model.statistics.spec(i);
    INFO(spec.name);
    CHECK(apart(model.read(model.buffers.view(i)), dump.load(prefix + ".buffer." + spec.name, spec.shape)) <
          kTolerance);
  }
}

void check_one_step(const Dump& dump, const std::string& prefix, HashedModel& model) {
  const Shape logits{model.training.batch(), kClasses};
  CHECK(apart(model.read(model.evaluate()), dump.load(prefix + ".eval.logits", logits)) < kTolerance);

  const HashedModel::Result result = model.run();
  CHECK(apart(result.logits, dump.load(prefix + ".logits", logits)) < kTolerance);
  CHECK(apart({&result.loss, 1}, dump.load(prefix + ".loss", {1})) < kTolerance);
  check_statistics(dump, prefix, model);
  for (int i = 0; i < model.params.size(); ++i) {
    const std::string& name = model.params.spec(i).name;
    INFO(name);
    const auto gradient = model.read(model.gradients.view(i));
    const float norm = norm_of(gradient);
    CHECK(apart({&norm, 1}, dump.load(prefix + ".grad.norm." + name, {1})) < kTolerance);
    const std::vector<float> sample = sample_of(gradient);
    CHECK(apart(sample, dump.load(prefix + ".grad.sample." + name, {static_cast<int64_t>(sample.size())})) <
          kTolerance);
  }
}

TEST_CASE("ResNet-20 agrees with PyTorch: logits, loss, gradients, statistics") {
  const auto factory = GENERATE(from_range(backends()));
  const auto backend = factory.make();
  HashedModel model(*backend, make_resnet({.depth = 20}, {32, 32, 3}), 8);
  model.load_batch(19, 0);
  check_one_step(Dump("resnet20.safetensors"), "one", model);
}

TEST_CASE("ResNet-18 agrees with PyTorch: stem, projection shortcuts, gradients") {
  const auto factory = GENERATE(from_range(backends()));
  const auto backend = factory.make();
  const ResNetOptions options{.stem = ResNetOptions::Stem::imagenet,
                              .shortcut = ResNetOptions::Shortcut::projection,
                              .depth = 18,
                              .width = 64,
                              .classes = kClasses};
  HashedModel model(*backend, make_resnet(options, {64, 64, 3}), 2);
  model.load_batch(16, 0);
  check_one_step(Dump("imagenet.safetensors"), "resnet18", model);
}

TEST_CASE("AlexNet agrees with PyTorch: grouped convolutions, response normalisation, order of the flattened image") {
  const auto factory = GENERATE(from_range(backends()));
  const auto backend = factory.make();
  HashedModel model(*backend, make_alexnet({.classes = kClasses}, {67, 67, 3}), 2);
  model.load_batch(0, 0);
  const auto truth = Dump("imagenet.safetensors").load("alexnet.eval.logits", {2, kClasses});
  CHECK(apart(model.read(model.evaluate()), truth) < kTolerance);
}

TEST_CASE("20 steps of SGD with momentum, Nesterov and weight decay agree with PyTorch") {
  const auto factory = GENERATE(from_range(backends()));
  const auto backend = factory.make();
  constexpr int kSteps = 20, kSeed = 13;
  HashedModel model(*backend, make_resnet({.depth = 20}, {12, 12, 3}), 4,
                    {.weight = 0.4f, .bias = 0.6f, .spread = 0.04f});
  const auto communicator = make_single_communicator();
  const auto optimizer = make_sgd({.backend = *backend, .communicator = *communicator, .layout = model.params},
                                  {.momentum = 0.9f, .weight_decay = 1e-4f, .nesterov = true, .clip_norm = {}});
  StepRecord record(*backend, *communicator, 1);
  const Dump dump("resnet20.safetensors");
  const auto losses = dump.load("many.loss", {kSteps});

  for (int step = 0; step < kSteps; ++step) {
    INFO("step " << step + 1);
    model.load_batch(kSeed, step % 2);
    const HashedModel::Result result = model.run();
    CHECK(apart({&result.loss, 1}, std::span(losses).subspan(static_cast<size_t>(step), 1)) < kTolerance);
    float* const gradients = model.gradients.data();
    record.begin({.step = static_cast<uint64_t>(step), .lr = 0.02f});
    optimizer->step({.gradients = {&gradients, 1}, .weights = model.weights, .record = record});

    for (int i = 0; i < model.params.size(); ++i) {
      const std::string& name = model.params.spec(i).name;
      INFO(name);
      const auto weights = model.read(model.weights.view(i));
      const auto norms = dump.load("many.norm." + name, {kSteps});
      const float norm = norm_of(weights);
      CHECK(apart({&norm, 1}, std::span(norms).subspan(static_cast<size_t>(step), 1)) < kTolerance);
      const std::vector<float> sample = sample_of(weights);
      const auto samples = dump.load("many.sample." + name, {kSteps, static_cast<int64_t>(sample.size())});
      CHECK(apart(sample, std::span(samples).subspan(static_cast<size_t>(step) * sample.size(), sample.size())) <
            kTolerance);
    }
  }
  check_statistics(dump, "many", model);
  model.load_batch(kSeed, 0);
  CHECK(apart(model.read(model.evaluate()), dump.load("many.eval.logits", {4, kClasses})) < kTolerance);
}

}  // namespace
}  // namespace dgc
