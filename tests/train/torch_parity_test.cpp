#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "dist/communicator.h"
#include "models/alexnet.h"
#include "models/resnet.h"
#include "optim/optimizer.h"
#include "tests/backends.h"
#include "tests/train/hashed_model.h"
#include "train/safetensors.h"

// The truth is PyTorch in float64 (tests/reference/make_dumps.py). PyTorch in float32 is off by at most 1e-5 there
// (tests/reference/study.py): inputs are chosen so that rounding flips no ReLU.
namespace dgc {
namespace {

constexpr double kTolerance = 1e-4;
constexpr size_t kSample = 128;

class Dump {
 public:
  explicit Dump(const std::string& file) : file_(read(file), file), device_(make_cpu_device()) {}

  std::vector<float> load(const std::string& tensor, const Shape& shape) const {
    std::vector<float> values(static_cast<size_t>(shape.numel()));
    file_.load(tensor, {values.data(), shape}, *device_);
    return values;
  }

 private:
  static std::string read(const std::string& file) {
    std::ifstream in(std::string(DGC_SOURCE_DIR "/tests/reference/") + file, std::ios::binary);
    REQUIRE(in);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  SafetensorsFile file_;
  std::shared_ptr<Device> device_;
};

// |ours - truth| / |truth|
double apart(std::span<const float> ours, std::span<const float> truth) {
  REQUIRE(ours.size() == truth.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double d = static_cast<double>(ours[i]) - static_cast<double>(truth[i]);
    difference += d * d;
    norm += static_cast<double>(truth[i]) * static_cast<double>(truth[i]);
  }
  return std::sqrt(difference / norm);
}

float norm_of(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return static_cast<float>(std::sqrt(sum));
}

// make_dumps.py's: all of a small tensor, random elements of a large one.
std::vector<float> sample_of(std::span<const float> x) {
  if (x.size() <= kSample) return {x.begin(), x.end()};
  std::vector<float> sample;
  for (size_t j = 0; j < kSample; ++j) sample.push_back(x[hashed::bits("sample", j) * x.size() >> 32]);
  return sample;
}

void check_statistics(const Dump& dump, const std::string& prefix, const HashedModel& model) {
  for (int i = 0; i < model.statistics.size(); ++i) {
    const ParamSpec& spec = model.statistics.spec(i);
    INFO(spec.name);
    CHECK(apart(span_of(model.buffers.view(i)), dump.load(prefix + ".buffer." + spec.name, spec.shape)) < kTolerance);
  }
}

void check_one_step(const Dump& dump, const std::string& prefix, HashedModel& model) {
  const Shape logits{model.training.batch(), kClasses};
  CHECK(apart(span_of(model.evaluate()), dump.load(prefix + ".eval.logits", logits)) < kTolerance);

  const HashedModel::Result result = model.run();
  CHECK(apart(result.logits, dump.load(prefix + ".logits", logits)) < kTolerance);
  CHECK(apart({&result.loss, 1}, dump.load(prefix + ".loss", {1})) < kTolerance);
  check_statistics(dump, prefix, model);
  for (int i = 0; i < model.params.size(); ++i) {
    const std::string& name = model.params.spec(i).name;
    INFO(name);
    const auto gradient = span_of(model.gradients.view(i));
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
  CHECK(apart(span_of(model.evaluate()), truth) < kTolerance);
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
      const auto weights = span_of(model.weights.view(i));
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
  CHECK(apart(span_of(model.evaluate()), dump.load("many.eval.logits", {4, kClasses})) < kTolerance);
}

}  // namespace
}  // namespace dgc
