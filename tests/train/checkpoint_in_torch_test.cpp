#include <fmt/format.h>
#include <sys/wait.h>

#include <catch.hpp>
#include <cmath>
#include <cstdlib>

#include "config/layer_types.h"
#include "models/alexnet.h"
#include "models/lstm_lm.h"
#include "models/resnet.h"
#include "paths.h"
#include "tasks/make_speech.h"
#include "tests/support/backends.h"
#include "tests/support/hashed_model.h"
#include "tests/support/run_files.h"
#include "tests/support/shell.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"
#include "tools/loaded_model.h"
#include "train/weights_file.h"

// Weights in the modules of docs/pytorch.md. Python takes seconds to import PyTorch, so all models go to one Python.
namespace dgc {
namespace {

namespace fs = std::filesystem;

const std::string kDevice = "device=auto";  // what a GPU has trained is opened too, where there is one

class InTorch {
 public:
  fs::path batch_file() { return folder_.path() / std::to_string(pairs_++); }
  void add(const fs::path& weights, const fs::path& batch) { words_.insert(words_.end(), {weights, batch}); }
  void add(const Checkpoint& checkpoint, const fs::path& batch) {
    add(checkpoint.path() / "weights.safetensors", batch);
  }

  void check() const {
    const int status = std::system(test::command_of(words_).c_str());
    REQUIRE(WIFEXITED(status));
    constexpr int kNoTorch = 77, kNoPython = 127;
    if (WEXITSTATUS(status) == kNoTorch || WEXITSTATUS(status) == kNoPython) {
      WARN("skipped: /usr/bin/python3 has no torch (Debian: apt install python3-torch)");
      return;
    }
    CHECK(WEXITSTATUS(status) == 0);
  }

 private:
  test::TempRun folder_;
  int pairs_ = 0;
  std::vector<std::string> words_ = {"/usr/bin/python3", "-B", DGC_SOURCE_DIR "/tests/reference/load_checkpoint.py"};
};

void add_resnet(InTorch& torch, const fs::path& run) {
  const std::vector<std::string> overrides = {
      R"(model={"type": "resnet", "depth": 20, "classes": 10})",
      R"(data={"type": "synthetic", "height": 16, "width": 16, "channels": 3, "train_samples": 64, "test_samples": 16})",
      kDevice, "workers_per_rank=2", "training.max_steps=4"};
  train(test::tiny_config(overrides), {.out = run});
  const auto checkpoint = newest_checkpoint(run);
  REQUIRE(checkpoint);
  const auto backend = make_cpu_backend(2);
  HashedModel model(*backend, make_resnet({.depth = 20}, {16, 16, 3}), 4);
  load_weights(*checkpoint, model.weights, model.buffers, {});
  model.load_batch(1, 0);
  const View logits = model.evaluate();
  const fs::path batch = torch.batch_file();
  write_safetensors(batch, {{.name = "images", .view = model.x()}, {.name = "logits", .view = logits}}, {},
                    *backend->device());
  torch.add(*checkpoint, batch);
}

std::string layers_with(const std::string& head) {
  return R"([
    {"type": "conv2d", "out": 8, "kernel": 3, "stride": 2, "pad": 1, "bias": false},
    {"type": "batch_norm", "relu": true},
    {"type": "max_pool", "kernel": 3, "stride": 2, "pad": 1},
    {"type": "conv2d", "out": 12, "kernel": 3, "pad": 1, "groups": 4},
    {"type": "batch_norm"},
    {"type": "sigmoid"},
    {"type": "lrn", "size": 3, "alpha": 0.5, "k": 2},
    {"type": "avg_pool", "kernel": 3, "stride": 1, "pad": 1},
    {"type": "relu"},
    {"type": ")" +
         head + R"("},
    {"type": "linear", "out": 16},
    {"type": "tanh"},
    {"type": "dropout", "p": 0.25},
    {"type": "linear", "out": 4, "bias": false}])";
}

// Images that are no squares tell height from width, and a head of each kind the order of what it reads.
void add_layers(InTorch& torch, const std::string& head) {
  constexpr int64_t kImages = 5, kHeight = 20, kWidth = 12;
  Config config = test::tiny_config(
      {"model={\"type\": \"layers\", \"layers\": " + layers_with(head) + "}",
       fmt::format("data={{\"type\": \"synthetic\", \"height\": {}, \"width\": {}, \"channels\": 3, \"classes\": 4, "
                   "\"train_samples\": 64, \"test_samples\": 16}}",
                   kHeight, kWidth),
       kDevice, "training.max_steps=4"});
  const auto run = train(config, {.out = torch.batch_file()});
  const auto checkpoint = newest_checkpoint(run);
  REQUIRE(checkpoint);
  config.device = "cpu";  // where the images are
  FoundCheckpoint found([&] { return *checkpoint; });
  const LoadedModel model(config, found, {kHeight, kWidth, 3});
  std::vector<float> images;
  for (int64_t i = 0; i < kImages * kHeight * kWidth * 3; ++i) {
    images.push_back(std::sin(static_cast<float>(i * i % 1009)));
  }
  Executor executor(model.network, *model.backend, kImages, Executor::Mode::evaluation);
  const Buffer memory(model.backend->device(), executor.activation_bytes());
  executor.attach(memory.data());
  const ConstView x{images.data(), {kImages, kHeight, kWidth, 3}};
  const View logits = executor.forward(model.weights, model.statistics, x, {.training = false});
  const fs::path batch = torch.batch_file();
  write_safetensors(batch, {{.name = "images", .view = x}, {.name = "logits", .view = logits}}, {},
                    *model.backend->device());
  torch.add(*checkpoint, batch);
}

// A step of AlexNet would take longer than all else here, so its weights are made up.
void add_alexnet(InTorch& torch) {
  const auto backend = make_cpu_backend(2);
  const Network network = make_alexnet({.classes = 10}, {63, 63, 3});
  const ParamLayout params(network.params());
  const Arena weights(backend->device(), params);
  hashed::fill(weights, {});
  const std::vector<float> images = hashed::images("alexnet.images", 2, 63);
  Executor executor(network, *backend, 2, Executor::Mode::evaluation);
  const Buffer memory(backend->device(), executor.activation_bytes());
  executor.attach(memory.data());
  const ConstView x{images.data(), {2, 63, 63, 3}};
  const ParamLayout none(network.buffers());
  const View logits = executor.forward(weights, Arena(backend->device(), none), x, {.training = false});
  const fs::path file = torch.batch_file(), batch = torch.batch_file();
  std::vector<TensorSource> sources;
  append_tensors(sources, weights);
  write_safetensors(file, sources, {}, *backend->device());
  write_safetensors(batch, {{.name = "images", .view = x}, {.name = "logits", .view = logits}}, {}, *backend->device());
  torch.add(file, batch);
}

void add_language_model(InTorch& torch, const std::string& tied) {
  const test::TinyText text;
  const auto run =
      train(text.config({kDevice, "model.tied=" + tied, "training.max_steps=4"}), {.out = torch.batch_file()});
  const auto checkpoint = newest_checkpoint(run);
  REQUIRE(checkpoint);

  constexpr int64_t kSteps = 5, kStreams = 2, kWords = 12;
  const auto backend = make_cpu_backend(2);
  const Network network =
      make_lstm_lm({.vocabulary = kWords, .embedding = 6, .hidden = 6, .layers = 2, .tied = tied == "true"}, kStreams);
  const ParamLayout params(network.params()), buffers(network.buffers()), states(network.state());
  const Arena weights(backend->device(), params), statistics(backend->device(), buffers),
      state(backend->device(), states);
  load_weights(*checkpoint, weights, statistics, network.ties());
  Executor executor(network, *backend, kSteps, Executor::Mode::evaluation);
  const Buffer memory(backend->device(), executor.activation_bytes());
  executor.attach(memory.data());
  const std::vector<int32_t> tokens = {0, 3, 7, 2, 2, 11, 5, 0, 9, 1};
  executor.forward(weights, statistics, {tokens.data(), {kSteps, kStreams}, DType::i32},
                   {.training = false, .state = &state});
  std::vector<float> logits(tokens.size() * kWords);
  const View all{logits.data(), {kSteps * kStreams, kWords}};
  executor.logits(weights, all);
  std::vector<float> as_numbers(tokens.begin(), tokens.end());  // the file has no integers but single ones
  const fs::path batch = torch.batch_file();
  write_safetensors(
      batch, {{.name = "tokens", .view = {as_numbers.data(), {kSteps, kStreams}}}, {.name = "logits", .view = all}}, {},
      *backend->device());
  torch.add(*checkpoint, batch);
}

void add_speech_model(InTorch& torch) {
  const test::TinySpeech speech;
  const Config config = speech.config({kDevice, "training.max_steps=4"});
  const auto run = train(config, {.out = torch.batch_file()});
  const auto checkpoint = newest_checkpoint(run);
  REQUIRE(checkpoint);

  constexpr int32_t kFrames = 25;
  Config on_host = config;  // where the frames are
  on_host.device = "cpu";
  FoundCheckpoint found([&] { return *checkpoint; });
  const LoadedModel model(on_host, found, speech_sample(config, 1));
  const int64_t frequencies = model.network.shape(0, kFrames).numel() / kFrames;
  std::vector<float> frames;
  for (int64_t i = 0; i < kFrames * frequencies; ++i) frames.push_back(std::sin(static_cast<float>(i * i % 1009)));
  Executor executor(model.network, *model.backend, kFrames, Executor::Mode::evaluation);
  const Buffer memory(model.backend->device(), executor.activation_bytes());
  executor.attach(memory.data());
  const ConstView x{frames.data(), model.network.shape(0, kFrames)}, lengths{&kFrames, {1}, DType::i32};
  const View output = executor.forward(model.weights, model.statistics, x, {.training = false, .lengths = lengths});
  const int64_t classes = model.network.classes();
  const fs::path batch = torch.batch_file();
  write_safetensors(batch,
                    {{.name = "frames", .view = {frames.data(), {kFrames, frequencies}}},
                     {.name = "logits", .view = {output.data, {output.numel() / classes, classes}}}},
                    {}, *model.backend->device());
  torch.add(*checkpoint, batch);
}

TEST_CASE("the layers that are compared with PyTorch's modules are of every type") {
  const std::string compared = layers_with("flatten") + layers_with("global_pool");
  for (const LayerType& type : layer_types()) {
    CHECK_THAT(compared, Catch::Contains(fmt::format("{{\"type\": \"{}\"", type.name)));
  }
}

TEST_CASE("weights opened by PyTorch as docs/pytorch.md says give the same logits") {
  InTorch torch;
  add_resnet(torch, torch.batch_file());
  add_alexnet(torch);
  for (const char* head : {"flatten", "global_pool"}) add_layers(torch, head);
  for (const char* tied : {"true", "false"}) add_language_model(torch, tied);
  add_speech_model(torch);
  torch.check();
}

}  // namespace
}  // namespace dgc
