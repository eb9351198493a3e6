// Every config that is shipped trains on the fake GPU, with its network made small and its data tiny, and ends in the
// CPU's weights but for rounding. Of each model a run is resumed, evaluated and used on the GPU.
#include <algorithm>
#include <catch.hpp>
#include <filesystem>

#include "tests/fake_cuda/small_models.h"
#include "tests/fake_cuda/support.h"
#include "tests/fake_cuda/trained.h"
#include "tests/support/shipped.h"
#include "tests/support/tiny.h"
#include "tests/support/tiny_speech.h"
#include "tests/support/tiny_text.h"
#include "tools/evaluate.h"
#include "tools/generate.h"
#include "tools/transcribe.h"
#include "train/trainer.h"

using namespace dgc;
using namespace dgc::test;

namespace {

namespace fs = std::filesystem;

const std::string kTinyImages =
    R"(data={"type": "synthetic", "height": 8, "width": 8, "channels": 3, "classes": 10, "train_samples": 32,
             "test_samples": 4})";

// What makes a config small. The rest of it stays: optimizer, schedule, exchange, the kind of network and of cell.
std::vector<std::string> made_small(const Config& config, const TinyText& text, const TinySpeech& speech) {
  std::vector<std::string> all = {
      "training.batch_per_worker=1", "training.eval_batch=4", "training.max_steps=4", "workers_per_rank=1", "ranks=1",
      "exchange.communicator=auto"};
  const std::string& type = config.model.type;
  if (type == "lstm_lm") {
    for (const std::string name : {"train", "valid", "test"}) {
      all.push_back(fmt::format("data.{}={}", name, text.path(name + ".txt").string()));
    }
    all.insert(all.end(), {"data.bptt=3", "data.eval_streams=3", "model.hidden=6", "model.vocabulary=0"});
  } else if (type == "deep_speech") {
    all.push_back(fmt::format(R"(data={{"type": "speech_manifest", "path": "{}", "sample_rate": 4000,
                                        "alphabet": "AB ", "max_seconds": 2}})",
                              speech.path("").string()));
    all.insert(all.end(), {"model.hidden=6", "model.layers=1",
                           R"(model.convolutions={"channels": [4], "kernel_frames": [3], "kernel_frequencies": [9],
                                                  "stride_frames": [2], "stride_frequencies": [4]})"});
  } else {
    all.push_back(kTinyImages);
    if (type == "resnet") all.push_back(R"(model={"type": "resnet", "depth": 8, "width": 4, "classes": 10})");
    if (type == "alexnet") all.push_back(kLikeAlexNet);
  }
  return all;
}

std::vector<std::string> with(std::vector<std::string> overrides, const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

}  // namespace

TEST_CASE("every shipped config, made small, trains on the GPU to the CPU's weights but for rounding") {
  const Gpu gpu({.multiprocessors = 1});  // fewer blocks take less time
  const TinyText text;
  const TinySpeech speech;
  const std::vector<std::string> paths = shipped_configs();
  CHECK(paths.size() > 30);
  for (const std::string& path : paths) {
    CAPTURE(path);
    const std::vector<std::string> small = made_small(load_config(path), text, speech);
    constexpr int kSteps = 3;  // the third is recorded, where the sparsity stays the same
    const auto on_gpu = trained(load_config(path, with(small, {"device=cuda:0"})), kSteps).weights;
    const auto on_cpu = trained(load_config(path, with(small, {"device=cpu"})), kSteps).weights;
    CHECK(apart(on_gpu, on_cpu) < 2e-3);  // one config sends values in fp16
  }
}

// The precisions take turns at the longer training, in which a step is recorded.
TEST_CASE("every shipped config, made small, trains in every precision, and recorded as without a recording") {
  const Gpu gpu({.multiprocessors = 1});
  const TinyText text;
  const TinySpeech speech;
  const std::vector<std::string> precisions = {"tf32", "bf16", "fp16"};
  size_t turn = 0;
  for (const std::string& path : shipped_configs()) {
    const std::vector<std::string> small = made_small(load_config(path), text, speech);
    const double truth = trained(load_config(path, with(small, {"device=cpu"})), 1).losses.at(0);
    const std::string& recorded_in = precisions[turn++ % precisions.size()];
    for (const std::string& precision : precisions) {
      CAPTURE(path, precision);
      const Config config = load_config(path, with(small, {"device=cuda:0", "precision=" + precision}));
      const int steps = precision == recorded_in ? 3 : 1;
      const Trained recorded = trained(config, steps);
      REQUIRE(recorded.losses.size() == static_cast<size_t>(steps));
      CHECK(recorded.losses[0] == Approx(truth).epsilon(0.02));
      if (precision != recorded_in) continue;
      const Trained plain = trained(config, steps, false);
      CHECK(recorded.weights == plain.weights);
      CHECK(recorded.losses == plain.losses);
    }
  }
}

TEST_CASE("every way of exchange trains on the GPU to the CPU's weights but for rounding") {
  const Gpu gpu;
  const std::string exchange =
      GENERATE(R"({"workers_per_group": 2})", R"({"transport": "dense"})", R"({"transport": "sparse"})",
               R"({"algorithm": "split_reduce"})", R"({"overlap": "on", "bucket_mb": 0.001})",
               R"({"wire": {"values": "fp16", "indices": "rice"}, "small_tensors": "sparse"})",
               R"({"wire": {"values": "int8", "indices": "run16"}, "small_tensors": "dense_fp16"})");
  const auto make = [&](const std::string& device) {
    return tiny_config({R"(optimizer={"type": "dgc", "momentum": 0.9, "sparsity": 0.9, "warmup": {"epochs": 0}})",
                        "workers_per_rank=4", "device=" + device, "exchange=" + exchange});
  };
  CAPTURE(exchange);
  CHECK(apart(trained(make("cuda:0"), 4).weights, trained(make("cpu"), 4).weights) < 2e-3);
}

TEST_CASE("a run that is trained on the GPU is resumed and evaluated there, and its model generates and transcribes") {
  const Gpu gpu;
  const TempRun folder;
  const TinyText text;
  const TinySpeech speech;
  const std::string kind = GENERATE("images", "text", "speech");
  CAPTURE(kind);
  const auto make = [&](const std::string& steps) {
    const std::vector<std::string> all = {"device=cuda:0", "workers_per_rank=2", "training.max_steps=" + steps};
    return kind == "images" ? tiny_config(all) : kind == "text" ? text.config(all) : speech.config(all);
  };
  const fs::path whole = folder.path() / "whole", parts = folder.path() / "parts";
  train(make("4"), {whole});
  train(make("2"), {parts});
  train(make("4"), {.out = parts, .resume = true});
  CHECK(final_hash(parts) == final_hash(whole));

  const std::vector<std::string> on_gpu = {"device=cuda:0"}, on_cpu = {"device=cpu"};
  CHECK(evaluate_run(whole, {on_gpu}).metrics.steering_loss() ==
        Approx(evaluate_run(whole, {on_cpu}).metrics.steering_loss()));
  if (kind == "text") {
    const auto words = [&](const std::vector<std::string>& overrides) {
      std::vector<std::string> said;
      generate(whole, {.overrides = overrides, .prompt = "w1 w2", .words = 12},
               [&](std::string_view word) { said.emplace_back(word); });
      return said;
    };
    CHECK(words(on_gpu) == words(on_cpu));
  }
  if (kind == "speech") {
    const auto texts = [&](const std::vector<std::string>& overrides) {
      std::vector<std::string> said;
      transcribe(whole, {speech.path("26.wav").string()}, {.overrides = overrides},
                 [&](const std::string&, const std::string& one) { said.push_back(one); });
      return said;
    };
    CHECK(texts(on_gpu) == texts(on_cpu));
  }
}

TEST_CASE("a run in fp16 goes on with the loss scale that it had, and ends in the same bits") {
  const Gpu gpu;
  const TempRun folder;
  const std::string optimizer = GENERATE(kDgc, kSgd);
  const auto make = [&](int steps) {
    return tiny_config({optimizer, "device=cuda:0", "workers_per_rank=2", "precision=fp16",
                        fmt::format("training.max_steps={}", steps)});
  };
  const auto whole = folder.path() / "whole", parts = folder.path() / "parts";
  train(make(4), {.out = whole});
  train(make(2), {.out = parts});
  train(make(4), {.out = parts, .resume = true});
  const Manifest was = newest_checkpoint(whole)->manifest(), is = newest_checkpoint(parts)->manifest();
  for (const char* key : {"loss_scale", "good_steps"}) {
    CAPTURE(key);
    CHECK(is.values.number(key).value() == was.values.number(key).value());
  }
  REQUIRE(is.files.size() == was.files.size());
  for (size_t i = 0; i < is.files.size(); ++i) CHECK(is.files[i].xxh64 == was.files[i].xxh64);
  CHECK(final_hash(parts) == final_hash(whole));
}
