#include <catch.hpp>
#include <random>
#include <set>

#include "config/check_value.h"
#include "paths.h"
#include "tests/config/example.h"
#include "tests/support/shipped.h"

using namespace dgc;
using test::kExample;
using test::shipped_configs;

namespace {

std::string shipped(const std::string& name) { return DGC_SOURCE_DIR "/configs/" + name; }

std::set<std::string> different_sections(const Config& a, const Config& b) {
  std::set<std::string> sections;
  for (const auto& d : config_differences(a, b)) sections.insert(d.path.substr(0, d.path.find('.')));
  return sections;
}

}  // namespace

TEST_CASE("every shipped config is valid, and its resolved form is the same config", "[config]") {
  const auto files = shipped_configs();
  REQUIRE(files.size() >= 15);
  for (const auto& file : files) {
    CAPTURE(file);
    const Config config = load_config(file);
    const std::string resolved = resolved_json(config);
    CHECK(parse_config(resolved, "elsewhere.json") == config);
    CHECK(resolved_json(parse_config(resolved, "elsewhere.json")) == resolved);
  }
}

TEST_CASE("dense twins differ in the optimizer alone", "[config]") {
  const std::vector<std::pair<std::string, std::string>> twins = {
      {"quickstart.json", "quickstart_dense.json"},
      {"quickstart_speech.json", "quickstart_speech_dense.json"},
      {"experiments/an4_gru256_dgc.json", "experiments/an4_gru256_dense.json"},
      {"paper/librispeech_deepspeech.json", "paper/librispeech_deepspeech_dense.json"},
      {"paper/an4_lstm800.json", "paper/an4_lstm800_dense.json"},
      {"experiments/resnet20_cifar10_dgc.json", "experiments/resnet20_cifar10_dense.json"},
      {"experiments/resnet20_cifar10_dgc.json", "experiments/resnet20_cifar10_gradient_dropping.json"},
      {"paper/resnet110_cifar10_dgc.json", "paper/resnet110_cifar10_dense.json"},
      {"paper/resnet110_cifar10_dgc.json", "paper/resnet110_cifar10_gradient_dropping.json"},
      {"quickstart.json", "examples/ablation_gradient_dropping.json"},
      {"quickstart.json", "examples/ablation_no_factor_masking.json"},
      {"quickstart.json", "examples/ablation_no_momentum_correction.json"},
      {"quickstart.json", "examples/ablation_no_warmup.json"}};
  for (const auto& [a, b] : twins) {
    CAPTURE(a, b);
    CHECK(different_sections(load_config(shipped(a)), load_config(shipped(b))) == std::set<std::string>{"optimizer"});
  }
}

TEST_CASE("differences list paths and both values", "[config]") {
  const Config a = parse_config(kExample, "a.json");
  CHECK(config_differences(a, a).empty());

  const Config b = parse_config(kExample, "b.json", {"name=b", "seed=7", "optimizer.warmup.sparsity=[0.5]"});
  const std::vector<ConfigDifference> expected = {{"seed", "1", "7"},
                                                  {"optimizer.warmup.sparsity", "[0.75,0.9375]", "[0.5]"}};
  CHECK(config_differences(a, b) == expected);

  // A key or a whole section that only one of them has.
  const Config dense = parse_config(kExample, "c.json", {"optimizer={\"type\": \"sgd\"}"});
  const auto differences = config_differences(a, dense);
  const auto has = [&](const ConfigDifference& d) {
    return std::find(differences.begin(), differences.end(), d) != differences.end();
  };
  CHECK(has({"optimizer.type", "\"dgc\"", "\"sgd\""}));
  CHECK(has({"optimizer.sparsity", "0.999", ""}));
  CHECK(has({"optimizer.warmup.epochs", "4.0", ""}));

  const auto layers = [](const std::string& list) {
    return parse_config(kExample, "d.json", {"model={\"type\": \"layers\", \"layers\": " + list + "}"});
  };
  const std::vector<ConfigDifference> in_layers = {{"model.layers[0].out", "4", "5"},
                                                   {"model.layers[1].type", "", "\"relu\""}};
  CHECK(config_differences(layers(R"([{"type": "linear", "out": 4}])"),
                           layers(R"([{"type": "linear", "out": 5}, {"type": "relu"}])")) == in_layers);
}

TEST_CASE("configs/README.md ends with the generated reference", "[config]") {
  const std::string readme = read_text_file(shipped("README.md"), 1 << 24);
  // Stale? Replace what follows "## Every key" by the output of `dgc config --reference`.
  CHECK(readme.ends_with("\n\n" + config_reference_markdown()));
}

TEST_CASE("no damaged config does worse than a UserError", "[config]") {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::string bytes = "{}[]\",:.eE-+0123456789 \n\\u\xff\xc3ntf";
  const std::string whole = resolved_json(parse_config(kExample, "run.json"));
  int accepted = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = whole;
    for (size_t change = 0; change <= below(3); ++change) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = bytes[below(bytes.size())];
          break;
        case 1:
          text.erase(at, 1 + below(20));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), below(40)));
          break;
        default:
          text.resize(at + 1);
          break;
      }
    }
    INFO(text);
    try {
      const Config config = parse_config(text, "run.json");
      ++accepted;
      CHECK(parse_config(resolved_json(config), "run.json") == config);
    } catch (const UserError& error) {
      CHECK_THAT(error.what(), Catch::StartsWith("run.json: "));
    }
  }
  CHECK(accepted > 0);
  CHECK(accepted < 2000);
}
