// The file of model.init_from, for a network of a convolution, batch norm and a head that may be replaced. The input is
// the file: a header's text up to the first newline, and its data. What is accepted fills all of the network, but for a
// new head, with finite numbers.
#include <algorithm>
#include <cmath>

#include "config/config.h"
#include "config/model_types.h"
#include "tests/fuzz/safetensors_file.h"
#include "tests/fuzz/scratch.h"
#include "train/initial_weights.h"

using namespace dgc;
using fuzz::require;

namespace {

Network small_network() {
  const Config config = parse_config(R"({
    "model": {"type": "layers", "layers": [{"type": "conv2d", "out": 2, "kernel": 1, "bias": false},
                                           {"type": "batch_norm"}, {"type": "flatten"}, {"type": "linear", "out": 2}]},
    "data": {"type": "synthetic", "height": 1, "width": 1, "channels": 1, "classes": 2,
             "train_samples": 2, "test_samples": 2},
    "training": {"epochs": 1, "batch_per_worker": 1}, "optimizer": {"type": "sgd"},
    "learning_rate": {"type": "constant", "base": 1}})",
                                     "fuzz.json");
  return make_network(config.model, {1, 1, 1});
}

// Not finite before it is filled.
Arena unfilled(const ParamLayout& layout) {
  Arena arena(make_cpu_device(), layout);
  for (int i = 0; i < layout.size(); ++i) {
    const View view = arena.view(i);
    std::fill_n(view.f32(), view.numel(), std::nanf(""));
  }
  return arena;
}

bool is_finite(const Arena& arena, int tensor) {
  const View view = arena.view(tensor);
  return std::all_of(view.f32(), view.f32() + view.numel(), [](float number) { return std::isfinite(number); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Scratch scratch;
  static const Network network = small_network();
  static const ParamLayout weights_layout(network.params()), statistics_layout(network.buffers());
  scratch.write("file", fuzz::safetensors_file({reinterpret_cast<const char*>(data), size}));
  const std::string file = scratch.path() + "/file";
  fuzz::accepted(file, [&] {
    const InitialWeights initial(file, network);
    const Arena weights = unfilled(weights_layout), statistics = unfilled(statistics_layout);
    initial.load(weights, statistics);
    for (int i = 0; i < statistics_layout.size(); ++i) require(is_finite(statistics, i));
    const int head = 2;  // weight and bias of the linear layer
    const int taken = weights_layout.size() - (initial.remark().empty() ? 0 : head);
    for (int i = 0; i < weights_layout.size(); ++i) require(is_finite(weights, i) == (i < taken));
  });
  return 0;
}
