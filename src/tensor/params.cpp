#include "tensor/params.h"

#include <unordered_set>

#include "tensor/rng.h"

namespace dgc {
namespace {
constexpr int64_t kAlign = 16;  // floats in 64 bytes
}

ParamLayout::ParamLayout(std::vector<ParamSpec> specs) : specs_(std::move(specs)), offsets_(specs_.size()) {
  std::unordered_set<std::string> seen;
  for (const ParamSpec& spec : specs_) DGC_CHECK(seen.insert(spec.name).second, "parameter named twice: " + spec.name);
  const auto place = [this](size_t i) {
    const int64_t numel = specs_[i].shape.numel();
    offsets_[i] = extent_;
    parameters_ += numel;
    extent_ += (numel + kAlign - 1) / kAlign * kAlign;
  };
  const auto place_all = [&](const auto& wanted) {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (wanted(specs_[i])) place(i);
    }
  };
  place_all([](const ParamSpec& spec) { return !spec.frozen && !is_small(spec); });
  small_offset_ = extent_;
  const int64_t large_parameters = parameters_;
  place_all([](const ParamSpec& spec) { return !spec.frozen && is_small(spec); });
  small_parameters_ = parameters_ - large_parameters;
  place_all([](const ParamSpec& spec) { return spec.frozen; });
}

std::vector<ParamSpec> trained_specs(std::vector<ParamSpec> specs) {
  std::erase_if(specs, [](const ParamSpec& spec) { return spec.frozen; });
  return specs;
}

void initialize(const Arena& weights, uint64_t seed) {
  const ParamLayout& layout = weights.layout();
  std::vector<float> host;
  for (int i = 0; i < layout.size(); ++i) {
    const Init& init = layout.spec(i).init;
    host.assign(static_cast<size_t>(layout.numel(i)), init.value);
    if (init.kind != Init::Kind::constant) {
      const Philox rng(seed, rng_stream("init", layout.spec(i).name));
      for (size_t e = 0; e < host.size(); ++e) {
        host[e] = init.kind == Init::Kind::normal ? init.value * rng.normal(e) : init.value * (2 * rng.uniform(e) - 1);
      }
    }
    weights.device().copy_in(weights.view(i).data, host.data(), host.size() * sizeof(float));
  }
}

}  // namespace dgc
