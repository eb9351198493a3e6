#include "train/weights_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tensor/errors.h"

namespace dgc {
namespace {

// PyTorch's BatchNorm also counts its batches, and its load_state_dict asks for the count.
void append_batch_counts(std::vector<TensorSource>& to, const ParamLayout& statistics, int64_t batches) {
  const std::string mean = "running_mean";
  for (int i = 0; i < statistics.size(); ++i) {
    const std::string& name = statistics.spec(i).name;
    if (!name.ends_with(mean)) continue;
    to.push_back(
        {.name = name.substr(0, name.size() - mean.size()) + "num_batches_tracked", .view = {}, .number = batches});
  }
}

// Copies one parameter after another to the host, whatever device has them.
template <typename Look>
void for_each_on_host(const Arena& weights, const Look& look) {
  const ParamLayout& layout = weights.layout();
  std::vector<float> host;
  for (int i = 0; i < layout.size(); ++i) {
    host.resize(static_cast<size_t>(layout.numel(i)));
    weights.device().copy_out(host.data(), weights.view(i).data, host.size() * sizeof(float));
    look(host);
  }
}

}  // namespace

void append_tensors(std::vector<TensorSource>& to, const Arena& arena, const std::string& prefix) {
  for (int i = 0; i < arena.layout().size(); ++i) {
    to.push_back({.name = prefix + arena.layout().spec(i).name, .view = arena.view(i)});
  }
}

void load_tensors(const SafetensorsFile& file, const Arena& arena, const std::string& prefix) {
  for (int i = 0; i < arena.layout().size(); ++i) {
    file.load(prefix + arena.layout().spec(i).name, arena.view(i), arena.device());
  }
}

std::vector<TensorSource> weight_tensors(const SavedWeights& saved) {
  std::vector<TensorSource> tensors;
  append_tensors(tensors, saved.weights);
  for (const Network::Tie& tie : saved.ties) {
    const auto shared = std::ranges::find(tensors, tie.of, &TensorSource::name);
    tensors.push_back({.name = tie.own, .view = shared->view});
  }
  append_tensors(tensors, saved.statistics);
  append_batch_counts(tensors, saved.statistics.layout(), saved.step);
  return tensors;
}

ManifestFile save_weights(const CheckpointStore& store, const SavedWeights& saved) {
  return store.write(saved.step, kWeightsFile, weight_tensors(saved), saved.weights.device());
}

void load_weights(const Checkpoint& checkpoint, const Arena& weights, const Arena& statistics,
                  std::span<const Network::Tie> ties) {
  const SafetensorsFile file = checkpoint.open(kWeightsFile);
  load_tensors(file, weights);
  load_tensors(file, statistics);
  require_no_others(file, weights.layout(), statistics.layout(), ties, (checkpoint.path() / kWeightsFile).string());
}

void require_no_others(const SafetensorsFile& file, const ParamLayout& parameters, const ParamLayout& statistics,
                       std::span<const Network::Tie> ties, const std::string& where) {
  std::set<std::string> known;
  for (const ParamLayout* layout : {&parameters, &statistics}) {
    for (int i = 0; i < layout->size(); ++i) known.insert(layout->spec(i).name);
  }
  for (const Network::Tie& tie : ties) known.insert(tie.own);
  for (const auto& [name, entry] : file.tensors()) {
    // PyTorch's count of batches changes nothing where the momentum of the statistics is a number.
    if (known.contains(name) || name.ends_with(".num_batches_tracked")) continue;
    throw_user_error("{}: the model has no tensor {}; is the file of another model?", where, name);
  }
}

std::vector<uint64_t> tensor_hashes(const Arena& weights) {
  std::vector<uint64_t> hashes;
  for_each_on_host(weights, [&](const std::vector<float>& host) {
    hashes.push_back(XXH64(host.data(), host.size() * sizeof(float), 0));
  });
  return hashes;
}

std::string weights_xxh64(const Arena& weights) {
  const std::vector<uint64_t> hashes = tensor_hashes(weights);
  return xxh64_hex({reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(uint64_t)});
}

bool all_finite(const Arena& weights) {
  bool finite = true;
  for_each_on_host(weights, [&](const std::vector<float>& host) {
    finite = finite && std::ranges::all_of(host, [](float value) { return std::isfinite(value); });
  });
  return finite;
}

}  // namespace dgc
