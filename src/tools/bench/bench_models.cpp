#include "tools/bench/bench_models.h"

#include <fmt/format.h>

#include "models/lstm_lm.h"
#include "models/resnet.h"

namespace dgc {
namespace {

void add(std::vector<ParamSpec>& to, const std::string& name, const Shape& shape) { to.push_back({name, shape, {}}); }

// 2 convolutions, 7 bidirectional GRUs of 1200 without biases on 672 features, BatchNorm in between, 29 characters.
ParamLayout deep_speech() {
  constexpr int64_t kHidden = 1200, kFeatures = 672, kCharacters = 29;
  std::vector<ParamSpec> specs;
  const auto norm = [&](const std::string& name, int64_t channels) {
    add(specs, name + ".weight", {channels});
    add(specs, name + ".bias", {channels});
  };
  add(specs, "conv.0.weight", {32, 1, 41, 11});
  add(specs, "conv.0.bias", {32});
  norm("conv.1", 32);
  add(specs, "conv.3.weight", {32, 32, 21, 11});
  add(specs, "conv.3.bias", {32});
  norm("conv.4", 32);
  for (int layer = 0; layer < 7; ++layer) {
    const std::string name = "rnns." + std::to_string(layer);
    const int64_t in = layer == 0 ? kFeatures : kHidden;
    for (const char* direction : {"", "_reverse"}) {
      add(specs, fmt::format("{}.weight_ih_l0{}", name, direction), {3 * kHidden, in});
      add(specs, fmt::format("{}.weight_hh_l0{}", name, direction), {3 * kHidden, kHidden});
    }
    norm(name + ".norm", kHidden);
  }
  add(specs, "fc.weight", {kCharacters, kHidden});
  return ParamLayout(specs);
}

ParamLayout ptb_lstm() {
  return ParamLayout(make_lstm_lm({.vocabulary = 10000, .embedding = 1500, .hidden = 1500, .layers = 2}, 1).params());
}

ParamLayout resnet50() {
  return ParamLayout(make_resnet({.stem = ResNetOptions::Stem::imagenet,
                                  .shortcut = ResNetOptions::Shortcut::projection,
                                  .depth = 50,
                                  .width = 64,
                                  .classes = 1000},
                                 {224, 224, 3})
                         .params());
}

// About as many parameters as ResNet-50 has, for whose candidates all blocks of threads add to one counter.
ParamLayout one_tensor() {
  std::vector<ParamSpec> specs;
  add(specs, "weight", {5000, 5000});
  return ParamLayout(specs);
}

}  // namespace

const std::vector<BenchModel>& bench_models() {
  static const std::vector<BenchModel> all = {{"deep_speech", deep_speech},  // 117,461,168 parameters
                                              {"one_tensor", one_tensor},    // 25,000,000
                                              {"ptb_lstm", ptb_lstm},        // 51,034,000
                                              {"resnet50", resnet50}};       // 25,557,032
  return all;
}

}  // namespace dgc
