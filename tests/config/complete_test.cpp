#include <catch.hpp>

#include "tests/config/example.h"

using namespace dgc;
using test::kExample;
using test::refusal, test::with;

namespace {

std::string said_of_overrides(const std::vector<std::string>& overrides) {
  return refusal([&] { with(overrides); });
}

}  // namespace

TEST_CASE("depth decides stem, shortcut and width", "[config]") {
  // 50 and 152 are 6n+2 as well: ImageNet's meaning wins, unless the stem says otherwise.
  for (const int depth : {18, 34, 50, 101, 152}) {
    const ResNetOptions m = with({"model.depth=" + std::to_string(depth)}).model.resnet;
    CHECK(m.stem == ResNetOptions::Stem::imagenet);
    CHECK(m.shortcut == ResNetOptions::Shortcut::projection);
    CHECK(m.width == 64);
  }
  for (const int depth : {8, 14, 20, 32, 44, 56, 110, 1202}) {
    CHECK(with({"model.depth=" + std::to_string(depth)}).model.resnet.stem == ResNetOptions::Stem::cifar);
  }
  CHECK(with({"model.depth=50", "model.stem=cifar"}).model.resnet.width == 16);
  CHECK(with({"model.shortcut=projection"}).model.resnet.shortcut == ResNetOptions::Shortcut::projection);
}

TEST_CASE("depths that do not exist are refused", "[config]") {
  CHECK_THAT(said_of_overrides({"model.depth=21"}),
             Catch::StartsWith("run.json: model.depth: 21 is no depth of a CIFAR ResNet") ||
                 Catch::StartsWith("--set model.depth=21: model.depth: 21 is no depth"));
  CHECK_THAT(said_of_overrides({"model.stem=imagenet"}),
             Catch::Contains("model.depth: 20 is none of 18, 34, 50, 101, 152"));
  CHECK_THAT(said_of_overrides({"model.depth=50", "model.shortcut=identity_pad"}),
             Catch::Contains("use \"projection\""));
  CHECK_THAT(said_of_overrides({"model.depth=50", "model.width=32"}), Catch::Contains("it is 64, not 32"));
}

TEST_CASE("what config.json could not hold is refused", "[config]") {
  CHECK_THAT(said_of_overrides({"data.path=caf\xe9"}), Catch::Contains("data.path: not UTF-8"));
  CHECK_THAT(said_of_overrides({"data.path=\"a\\u0000b\""}), Catch::Contains("data.path: it has a NUL in it"));
}

TEST_CASE("an output that was not meant as it is written is refused, but a run that has it is read", "[config]") {
  CHECK(said_of_overrides({"output=~/runs/{name}"}) ==
        "--set output=~/runs/{name}: output: a shell puts your home for ~ only where a word begins with it: write "
        "\"$HOME/runs/example\", or in a file the whole path; write ./~/runs/example for a folder called ~");
  CHECK_NOTHROW(with({"output=./~/runs/{name}"}));
  const std::string braces = test::replaced(kExample, "\"name\"", "\"output\": \"runs/{name}{seed}\", \"name\"");
  CHECK(refusal([&] { parse_config(braces, "run.json"); }) ==
        "run.json: output: {name} alone stands for something, the run's name; leave out all other braces");
  const test::TemporaryFile file(braces);
  CHECK(load_run_config(file.path()).output == "runs/example{seed}");
  const std::string no_effect = "optimizer.masked_momentum=sent", local = "exchange.every_steps=4";
  CHECK_NOTHROW(load_run_config(file.path(), {no_effect, local}));
}

TEST_CASE("images that are too small for AlexNet are refused by the key that makes them larger", "[config]") {
  const std::string alexnet = R"(model={"type": "alexnet", "classes": 10})";
  CHECK_THAT(said_of_overrides({alexnet}),
             Catch::EndsWith("data.pad_to: images of 32 x 32 are too small for model.type \"alexnet\"; set it to 63 or "
                             "more"));
  CHECK_THAT(said_of_overrides({alexnet, R"(data={"type": "mnist", "path": "x"})"}),
             Catch::EndsWith("model.type: \"alexnet\" wants images of 3 channels, and those of data.type \"mnist\" "
                             "have 1"));
  const std::string folder = R"(data={"type": "image_folder", "path": "x", "image_size": )";
  CHECK_THAT(said_of_overrides({alexnet, folder + "62}"}), Catch::Contains("data.image_size: images of 62 x 62 are"));
  CHECK_NOTHROW(with({alexnet, folder + "63}"}));
  const auto [height, width, key] = GENERATE(
      table<int, int, std::string>({{32, 64, "data.height"}, {64, 32, "data.width"}, {32, 32, "data.height"}}));
  CHECK_THAT(said_of_overrides(
                 {alexnet, fmt::format(R"(data={{"type": "synthetic", "height": {}, "width": {}}})", height, width)}),
             Catch::Contains(fmt::format("{}: images of {} x {} are too small", key, height, width)));
  CHECK_THAT(said_of_overrides({alexnet, R"(data={"type": "an4", "path": "x"})"}), Catch::Contains("model.type"));
}

TEST_CASE("keys that contradict one another are refused", "[config]") {
  CHECK(said_of_overrides({"model.classes=11"}) ==
        "--set model.classes=11: model.classes: 11, but the data have 10 classes");
  CHECK_THAT(said_of_overrides({"data.pad_to=31"}), Catch::Contains("31 is less than the images' own 32"));
  CHECK_THAT(said_of_overrides({"optimizer.nesterov=true", "optimizer.momentum=0"}),
             Catch::Contains("needs an optimizer.momentum"));
  CHECK_THAT(said_of_overrides({"learning_rate.milestones=[15, 15]"}), Catch::Contains("must increase"));
  CHECK_THAT(said_of_overrides({"ranks=2", "exchange.communicator=single"}), Catch::Contains("use \"threads\""));
  CHECK_THAT(said_of_overrides({"learning_rate={\"type\": \"plateau\", \"base\": 1, \"end\": 2}"}),
             Catch::Contains("learning_rate.end") && Catch::Contains("at most learning_rate.base"));
  CHECK_THAT(said_of_overrides({"learning_rate={\"type\": \"plateau\", \"base\": 1}", "training.eval_every_epochs=0"}),
             Catch::Contains("its rates depend on evaluations"));
  CHECK_THAT(said_of_overrides({"data={\"type\": \"image_folder\", \"path\": \"x\", \"augment\": {\"min_scale\": 0.9, "
                                "\"max_scale\": 0.5}}"}),
             Catch::Contains("more than data.augment.max_scale"));
  CHECK_THAT(said_of_overrides({R"(data={"type": "image_folder", "path": "x", "augment": {"min_ratio": 1.5}})"}),
             Catch::Contains("data.augment.min_ratio: more than data.augment.max_ratio"));
  CHECK_THAT(said_of_overrides({"exchange.dense_values=fp16"}), Catch::Contains("is for optimizer.type \"sgd\""));
  CHECK(said_of_overrides({"exchange.dense_values=fp16", "optimizer={\"type\": \"sgd\"}"}).empty());
  const std::string sgd = "optimizer={\"type\": \"sgd\"}", split = "exchange.algorithm=split_reduce";
  CHECK(said_of_overrides({split, "exchange.workers_per_group=8"}).empty());
  CHECK_THAT(said_of_overrides({split, sgd}),
             Catch::Contains("exchange.algorithm") && Catch::Contains("\"dgc\" alone sends"));
  CHECK_THAT(said_of_overrides({split, "exchange.wire.values=fp16"}),
             Catch::Contains("exchange.wire") && Catch::Contains("leave it out"));
  const std::string sent = "optimizer.masked_momentum=sent";
  CHECK(said_of_overrides({sent}).empty());
  CHECK_THAT(said_of_overrides({sent, split}), Catch::Contains("optimizer.masked_momentum: \"sent\" needs"));
  CHECK_THAT(said_of_overrides({sent, "optimizer.factor_masking=false"}), Catch::Contains("momentum that is masked"));
  CHECK_THAT(said_of_overrides({sent, "optimizer.momentum=0", "optimizer.nesterov=false"}),
             Catch::Contains("needs a momentum above 0"));
  CHECK_THAT(said_of_overrides({sent, "exchange.every_steps=4"}), Catch::Contains("exchange.outer.momentum"));
  CHECK(said_of_overrides({sent, "exchange.every_steps=4", "exchange.outer.momentum=0.5"}).empty());
  CHECK_THAT(said_of_overrides({"exchange.workers_per_group=2", sgd}), Catch::Contains("exchange.workers_per_group"));
  CHECK_THAT(said_of_overrides({"exchange.overlap=on", "optimizer={\"type\": \"sgd\"}"}),
             Catch::Contains("for optimizer.type \"dgc\""));
  CHECK_THAT(said_of_overrides({"exchange.overlap=on", "optimizer.clip_norm=1"}),
             Catch::Contains("optimizer.clip_norm exclude"));
  CHECK_THAT(said_of_overrides({"exchange.overlap=on", "exchange.transport=dense"}),
             Catch::Contains("is for messages"));
  CHECK_THAT(said_of_overrides({"exchange.overlap=on", split}), Catch::Contains("is for exchange.algorithm"));
  CHECK_THAT(said_of_overrides({"exchange.overlap=on", "exchange.workers_per_group=2"}),
             Catch::Contains("workers_per_group exclude"));
  CHECK_THAT(said_of_overrides({"exchange.overlap=on", "workers_per_rank=2", "workers_at_once=2"}),
             Catch::Contains("exchange.overlap \"on\" is for workers that compute one after"));
  CHECK(said_of_overrides({"exchange.overlap=on", "workers_per_rank=1", "workers_at_once=2"}).empty());
  CHECK(said_of_overrides({"exchange.overlap=on"}).empty());
  CHECK(said_of_overrides({"exchange.overlap=auto", "optimizer.clip_norm=1"}).empty());
  CHECK(said_of_overrides({"ranks=2"}).empty());
}

TEST_CASE("steps of workers' own exclude what needs all workers in every step", "[config]") {
  const std::string four = "exchange.every_steps=4";
  CHECK(said_of_overrides({four, "exchange.outer.momentum=0.9", "exchange.outer.nesterov=true"}).empty());
  CHECK(said_of_overrides({four, "optimizer={\"type\": \"sgd\"}", "exchange.dense_values=fp16"}).empty());
  CHECK_THAT(said_of_overrides({"exchange.outer.learning_rate=0.7"}),
             Catch::Contains("exchange.outer") && Catch::Contains("set exchange.every_steps above 1"));
  CHECK_THAT(said_of_overrides({four, "exchange.outer.nesterov=true"}),
             Catch::Contains("needs an exchange.outer.momentum above 0"));
  CHECK_THAT(said_of_overrides({four, "exchange.workers_per_group=2"}),
             Catch::Contains("exchange.every_steps: the workers of exchange.workers_per_group"));
  CHECK_THAT(said_of_overrides({four, "exchange.overlap=on"}), Catch::Contains("exchange.overlap \"on\" is for"));
  CHECK_THAT(said_of_overrides({four, "precision=fp16"}), Catch::Contains("has a loss scale"));
}

TEST_CASE("ranks may be late for messages alone, which a worker has made by itself", "[config]") {
  const std::string four = "exchange.every_steps=4", wait = "exchange.wait=2";
  CHECK(said_of_overrides({four, wait, "ranks=2"}).empty());
  CHECK(said_of_overrides({four, "exchange.wait=0.5", "exchange.small_tensors=sparse"}).empty());
  CHECK(said_of_overrides({four, "exchange.wait=null"}).empty());
  CHECK_THAT(said_of_overrides({wait}),
             Catch::Contains("exchange.wait") && Catch::Contains("exchange.every_steps above 1"));
  CHECK_THAT(said_of_overrides({four, "exchange.wait=-1"}), Catch::Contains("exchange.wait"));
  for (const std::string other :
       {"optimizer={\"type\": \"sgd\"}", "exchange.transport=dense", "exchange.algorithm=split_reduce",
        "exchange.small_tensors=dense_fp16", "exchange.communicator=nccl"}) {
    CAPTURE(other);
    CHECK_THAT(said_of_overrides({four, wait, other}),
               Catch::Contains("exchange.wait: ") && Catch::Contains("leave it out, so that all ranks wait for all"));
  }
}

TEST_CASE("chosen classes decide how many a model needs", "[config]") {
  const std::string cifar = R"(data={"type": "cifar10", "path": "x", "only_classes": [7, 3]})";
  CHECK_NOTHROW(with({cifar, "model.classes=2"}));
  CHECK_THAT(said_of_overrides({cifar, "model.classes=10"}), Catch::Contains("10, but the data have 2 classes"));
  CHECK_THAT(said_of_overrides({cifar, "model.classes=3", "data.only_classes=[7, 3, 7]"}),
             Catch::Contains("7 is there twice"));
  CHECK_THAT(said_of_overrides({cifar, "model.classes=2", "data.only_classes=[10, 3]"}),
             Catch::Contains("data.only_classes: 10 is no class of cifar10, which has 0 to 9"));
  CHECK_THAT(said_of_overrides({cifar, "model.classes=2", "data.only_classes=[3]"}),
             Catch::Contains("data.only_classes: one class has no other to be told from; give at least two, or []"));
  CHECK_NOTHROW(with({cifar, "model.classes=10", "data.only_classes=[]"}));
}

TEST_CASE("what goes by a validation set needs one, and evaluations", "[config]") {
  for (const std::string key : {"training.stop_after=3", "checkpoint.best=true"}) {
    CHECK_THAT(said_of_overrides({key}), Catch::Contains("goes by a validation set, and there is none"));
    CHECK_THAT(said_of_overrides({key, "data.validation_split=0.1", "training.eval_every_epochs=0"}),
               Catch::Contains("needs evaluations"));
    CHECK_NOTHROW(with({key, "data.validation_split=0.1"}));
  }
}
