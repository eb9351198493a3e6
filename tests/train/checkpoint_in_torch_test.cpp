#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "models/resnet.h"
#include "tests/backends.h"
#include "tests/train/hashed_model.h"
#include "tests/train/run_files.h"
#include "tests/train/tiny.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

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

  const std::string weights = (checkpoint->path() / "weights.safetensors").string();
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

}  // namespace
}  // namespace dgc
