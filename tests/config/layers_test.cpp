#include <fmt/format.h>

#include <catch.hpp>

#include "config/layer_types.h"
#include "json/text.h"
#include "paths.h"
#include "tests/config/example.h"

using namespace dgc;
using test::kExample;
using test::refusal;

namespace {

Config with_layers(const std::string& list) {
  return parse_config(kExample, "run.json", {"model={\"type\": \"layers\", \"layers\": " + list + "}"});
}

// Without the origin, which repeats the whole override.
std::string said_of_layers(const std::string& list) {
  const std::string text = refusal([&] { with_layers(list); });
  const size_t at = text.rfind(": model.layers");
  return at == std::string::npos ? text : text.substr(at + 2);
}

}  // namespace

TEST_CASE("a list of layers becomes structs", "[config]") {
  const auto layers = with_layers(R"([
      {"type": "conv2d", "out": 16, "kernel": 3, "stride": 2, "pad": 1, "groups": 1, "bias": false},
      {"type": "batch_norm", "relu": true}, {"type": "max_pool", "kernel": 2, "stride": 2}, {"type": "lrn", "k": 2},
      {"type": "dropout", "p": 0.25}, {"type": "flatten"}, {"type": "linear", "out": 10}])")
                          .model.layers;
  REQUIRE(layers.size() == 7);
  CHECK(layers[0].type == "conv2d");
  CHECK(layers[0].conv2d.out == 16);
  CHECK(layers[0].conv2d.stride == 2);
  CHECK_FALSE(layers[0].conv2d.bias);
  CHECK(layers[1].batch_norm.relu);
  CHECK(layers[2].type == "max_pool");
  CHECK(layers[2].pool.pad == 0);
  CHECK(layers[3].lrn.k == 2);
  CHECK(layers[3].lrn.size == 5);
  CHECK(layers[4].dropout.p == 0.25);
  CHECK(layers[6].linear.bias);
}

TEST_CASE("a wrong layer is named by its place", "[config]") {
  CHECK(said_of_layers("[]") == "model.layers: it must have at least 1 entry");
  CHECK(said_of_layers("[3]") == "model.layers[0]: must be an object, not a number");
  CHECK(said_of_layers(R"([{"type": "relu"}, {}])") != "");
  CHECK_THAT(
      said_of_layers(R"([{"type": "relu"}, {"type": "conv2"}])"),
      Catch::StartsWith("model.layers[1].type: it must be one of ") && Catch::EndsWith("did you mean \"conv2d\"?"));
  CHECK(said_of_layers(R"([{"type": "conv2d", "out": 4}])") ==
        "model.layers[0].kernel: missing; it must be an integer");
  CHECK(said_of_layers(R"([{"type": "max_pool", "kernel": 2}])") ==
        "model.layers[0].stride: missing; it must be an integer");
  CHECK(said_of_layers(R"([{"type": "max_pool", "kernel": 257, "stride": 2}])") ==
        "model.layers[0].kernel: 257 is out of range; it must be at least 1 and at most 256");
  CHECK(said_of_layers(R"([{"type": "linear", "out": 4, "bais": true}])") ==
        "model.layers[0].bais: unknown key; did you mean \"bias\"?");
  CHECK(said_of_layers(R"([{"type": "conv2d", "out": 4, "kernel": 3, "padding": 1}])") ==
        "model.layers[0].padding: unknown key; did you mean \"pad\"?");
  CHECK(said_of_layers(R"([{"type": "relu"}, {"type": "linear", "out_features": 10}])") ==
        "model.layers[1].out_features: unknown key; did you mean \"out\"?");
  CHECK(said_of_layers(R"([{"type": "dropout", "dropout": 0.5}])") ==
        "model.layers[0].dropout: unknown key; did you mean \"p\"?");
  CHECK(said_of_layers(R"([{"type": "relu", "kernel": 3}])") ==
        "model.layers[0].kernel: belongs to model.layers[0].type \"avg_pool\", \"conv2d\", \"max_pool\", and this is "
        "\"relu\"; leave it out");
  CHECK(said_of_layers(R"([{"type": "dropout", "p": 1}])") ==
        "model.layers[0].p: 1 is out of range; it must be at least 0 and less than 1");
}

TEST_CASE("docs/pytorch.md has a module for each type of layer", "[config]") {
  const std::string page = read_text_file(DGC_SOURCE_DIR "/docs/pytorch.md", 1 << 24);
  for (const LayerType& type : layer_types()) {
    CAPTURE(type.name);
    CHECK_THAT(page, Catch::Contains(fmt::format("    \"{}\": lambda o, w: ", type.name)));
  }
}
