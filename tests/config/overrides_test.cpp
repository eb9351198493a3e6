#include <catch.hpp>

#include "tests/config/example.h"

using namespace dgc;
using test::kExample;
using test::refusal, test::with;

namespace {

std::string said_of_override(const std::string& text) {
  return refusal([&] { with({text}); });
}

}  // namespace

TEST_CASE("overrides change, add and remove", "[config]") {
  CHECK(with({"optimizer.sparsity=0.99"}).optimizer.sparsity.final == 0.99);
  CHECK(with({"exchange.wire.values=fp16"}).optimizer.dgc.wire.values == WireValues::fp16);
  CHECK(with({"training.max_steps=5"}).training.max_steps == 5);
  CHECK(with({"training.max_steps=5", "training.max_steps=null"}).training.max_steps == std::nullopt);
  CHECK(with({"optimizer.warmup.sparsity=[0.5]"}).optimizer.sparsity.warmup.sparsity == std::vector{0.5});
  CHECK(with({"learning_rate={\"type\": \"constant\", \"base\": 1}"}).learning_rate.base == 1);
  CHECK(with({"optimizer={\"type\": \"sgd\"}", "optimizer.momentum=0.5"}).optimizer.dgc.sgd.momentum == 0.5);
}

TEST_CASE("a text key takes the text as it stands", "[config]") {
  CHECK(with({"name=2024"}).name == "2024");
  CHECK(with({"name=\"quoted\""}).name == "quoted");
  CHECK(with({"data.path=a=b"}).data.path == "a=b");
  CHECK(with({"device=cuda:1"}).device == "cuda:1");
  CHECK(with({"name=\"null\""}).name == "null");
}

TEST_CASE("null is no text", "[config]") {
  CHECK(said_of_override("name=null") == "--set name=null: name: it must be a string, not null");
  CHECK(said_of_override("model.init_from=null") ==
        "--set model.init_from=null: model.init_from: it must be a string, not null");
}

TEST_CASE("a wrong override is named as one", "[config]") {
  CHECK(said_of_override("optimizer.sparsity=2") ==
        "--set optimizer.sparsity=2: optimizer.sparsity: 2 is out of range; it must be at least 0 and less than 1");
  CHECK(said_of_override("optimizer.momentun=0.5") ==
        "--set optimizer.momentun=0.5: optimizer.momentun: unknown key; did you mean \"momentum\"?");
  CHECK(said_of_override("optimizer.warmup.epoch=1") ==
        "--set optimizer.warmup.epoch=1: optimizer.warmup.epoch: unknown key; did you mean \"epochs\"?");
  CHECK(said_of_override("optimzer.momentum=0.5") ==
        "--set optimzer.momentum=0.5: optimzer: unknown key; did you mean \"optimizer\"?");
  CHECK(said_of_override("training.epochs.x=1") ==
        "--set training.epochs.x=1: training.epochs.x: training.epochs is no section");
  CHECK(said_of_override("optimizer={\"type\": \"sgd\", \"type\": \"sgd\"}") ==
        "--set optimizer: type: this key is given twice");
  CHECK_THAT(said_of_override("optimizer.warmup={'epochs': 2}"),
             Catch::StartsWith("--set optimizer.warmup: line 1, column 2: not valid JSON"));
  CHECK_THAT(said_of_override("optimizer.warmup.sparsity=[0.9,]"), Catch::Contains("not valid JSON"));
  CHECK(said_of_override("data.path=[1").empty());
  CHECK(said_of_override("training.epochs") == "--set training.epochs: write it as KEY=VALUE");
  CHECK(said_of_override("=3") == "--set =3: write it as KEY=VALUE");
  for (const std::string key : {".", ".seed", "optimizer.", "optimizer..momentum"}) {
    CHECK(said_of_override(key + "=3") ==
          "--set " + key + "=3: " + key + " is no key; write it as in optimizer.sparsity=0.99");
  }
  CHECK(said_of_override("device=\xff") != "");
}
