#include <sys/wait.h>

#include <catch.hpp>
#include <cstdlib>

#include "models/lstm_lm.h"
#include "models/resnet.h"
#include "paths.h"
#include "tests/support/backends.h"
#include "tests/support/hashed_model.h"
#include "tests/support/run_files.h"
#include "tests/support/tiny_text.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

void check_in_torch(const Checkpoint& checkpoint, const std::filesystem::path& batch) {
  const std::string weights = (checkpoint.path() / "weights.safetensors").string();
  const std::string command =
      "/usr/bin/python3 -B " DGC_SOURCE_DIR "/tests/reference/load_checkpoint.py " + weights + " " + batch.string();
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  constexpr int kNoTorch = 77, kNoPython = 127;
  if (WEXITSTATUS(status) == kNoTorch || WEXITSTATUS(status) == kNoPython) {
    WARN("skipped: /usr/bin/python3 has no torch (Debian: apt install python3-torch)");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a checkpoint opened by PyTorch gives the same logits") {
  const test::TempRun folder;
  const auto run = folder.path() / "run";
  const std::vector<std::string> overrides = {
      R"(model={"type": "resnet", "depth": 20, "classes": 10})",
      R"(data={"type": "synthetic", "height": 16, "width": 16, "channels": 3, "train_samples": 64, "test_samples": 16})",
      "workers_per_rank=2", "training.max_steps=4"};
  train(test::tiny_config(overrides), {.out = run});
  const auto checkpoint = newest_checkpoint(run);
  REQUIRE(checkpoint);

  const auto backend = make_cpu_backend(2);
  HashedModel model(*backend, make_resnet({.depth = 20}, {16, 16, 3}), 4);
  load_weights(*checkpoint, model.weights, model.buffers);
  model.load_batch(1, 0);
  const View logits = model.evaluate();
  const auto batch = folder.path() / "batch.safetensors";
  write_safetensors(batch, {{.name = "images", .view = model.x()}, {.name = "logits", .view = logits}}, {},
                    *backend->device());

  check_in_torch(*checkpoint, batch);
}

TEST_CASE("a language model's checkpoint opened by PyTorch gives the same logits") {
  const test::TinyText text;
  const std::string tied = GENERATE("true", "false");
  const auto run = train(text.config({"model.tied=" + tied, "training.max_steps=4"}), {.out = text.path("run")});
  const auto checkpoint = newest_checkpoint(run);
  REQUIRE(checkpoint);

  constexpr int64_t kSteps = 5, kStreams = 2, kWords = 12;
  const auto backend = make_cpu_backend(2);
  const Network network =
      make_lstm_lm({.vocabulary = kWords, .embedding = 6, .hidden = 6, .layers = 2, .tied = tied == "true"}, kStreams);
  const ParamLayout params(network.params()), buffers(network.buffers()), states(network.state());
  const Arena weights(backend->device(), params), statistics(backend->device(), buffers),
      state(backend->device(), states);
  load_weights(*checkpoint, weights, statistics);
  Executor executor(network, *backend, kSteps, Executor::Mode::evaluation);
  const Buffer memory(backend->device(), executor.activation_bytes());
  executor.attach(memory.data());
  const std::vector<int32_t> tokens = {0, 3, 7, 2, 2, 11, 5, 0, 9, 1};
  executor.forward(weights, statistics, {tokens.data(), {kSteps, kStreams}, DType::i32},
                   {.training = false, .state = &state});
  std::vector<float> logits(tokens.size() * kWords);
  const View all{logits.data(), {kSteps * kStreams, kWords}};
  executor.logits(weights, 0, all);
  std::vector<float> as_numbers(tokens.begin(), tokens.end());  // the file has no integers but single ones
  const auto batch = text.path("batch.safetensors");
  write_safetensors(
      batch, {{.name = "tokens", .view = {as_numbers.data(), {kSteps, kStreams}}}, {.name = "logits", .view = all}}, {},
      *backend->device());
  check_in_torch(*checkpoint, batch);
}

}  // namespace
}  // namespace dgc
