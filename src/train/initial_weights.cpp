#include "train/initial_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "config/model_types.h"
#include "run/checkpoint.h"
#include "tasks/task.h"
#include "tensor/errors.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

constexpr const char* kKey = "model.init_from";

void refuse_folder(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return;
  const std::filesystem::path own = path / kWeightsFile;
  if (std::filesystem::exists(own, error)) {
    throw_user_error("{}: {} is a folder, and a file of weights is needed; give {}", kKey, path.string(), own.string());
  }
  throw_user_error("{}: {} is a folder, and a file of weights is needed; of a run, give {}", kKey, path.string(),
                   (path / kCheckpoints / "step-..." / kWeightsFile).string());
}

// A head of other classes may be larger than the network's own, and another program may have written more metadata.
std::string bytes_of(const std::string& file, const Network& network) {
  refuse_folder(file);
  constexpr uint64_t kHeadAndHeader = uint64_t{1} << 30;
  uint64_t numbers = 0;
  for (const auto* specs : {&network.params(), &network.buffers()}) {
    for (const ParamSpec& spec : *specs) numbers += static_cast<uint64_t>(spec.shape.numel());
  }
  try {
    return read_file(file, numbers * sizeof(float) + kHeadAndHeader);
  } catch (const UserError& error) {
    throw_user_error("{}: {}", kKey, error.what());
  }
}

SafetensorsFile parsed(std::string bytes, const std::string& file) {
  try {
    return {std::move(bytes), file};
  } catch (const UserError& error) {
    throw_user_error("{}: {}; it must be a safetensors file, and docs/fine_tuning.md makes one of a .pth", kKey,
                     error.what());
  }
}

std::string shown(const SafetensorsFile::Entry& entry) {
  return fmt::format("{} [{}]", entry.dtype, fmt::join(entry.shape, ", "));
}

bool fits(const SafetensorsFile::Entry& there, const ParamSpec& wanted) {
  return there.dtype == "F32" && std::ranges::equal(there.shape, wanted.shape);
}

bool is_finite(const SafetensorsFile::Entry& entry) {
  for (size_t at = 0; at < entry.bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, entry.bytes.data() + at, sizeof(value));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// The first size of a head's weight and bias is the number of classes.
bool only_classes_differ(const SafetensorsFile::Entry& there, const ParamSpec& wanted) {
  return there.dtype == "F32" && static_cast<int>(there.shape.size()) == wanted.shape.rank() && !there.shape.empty() &&
         there.shape[0] != wanted.shape[0] &&
         std::equal(there.shape.begin() + 1, there.shape.end(), wanted.shape.begin() + 1);
}

// The range [first, end) in Network::params() of the last layer's parameters, or of those that the loss has for itself.
std::pair<int, int> head_of(const Network& network) {
  const int all = static_cast<int>(network.params().size());
  if (network.own_loss_params() > 0) return {all - network.own_loss_params(), all};
  for (size_t i = network.nodes().size(); i-- > 0;) {
    const Network::Node& node = network.nodes()[i];
    if (node.params > 0) return {node.first_param, node.first_param + node.params};
  }
  return {all, all};
}

}  // namespace

InitialWeights::InitialWeights(const std::string& file, const Network& network)
    : InitialWeights(file, bytes_of(file, network), network) {}

InitialWeights::InitialWeights(const std::string& file, std::string bytes, const Network& network)
    : xxh64_(xxh64_hex(bytes)), file_(parsed(std::move(bytes), file)) {
  const std::pair<int, int> head = head_of(network);
  const auto check = [&](const ParamSpec& spec, bool may_be_new) {
    const auto found = file_.tensors().find(spec.name);
    const SafetensorsFile::Entry* const there = found == file_.tensors().end() ? nullptr : &found->second;
    if (there != nullptr && fits(*there, spec)) {
      if (is_finite(*there)) return;
      throw_user_error("{}: {}: not all numbers of tensor {} are finite; did the training that made it diverge?", kKey,
                       file, spec.name);
    }
    if (may_be_new && (there == nullptr || only_classes_differ(*there, spec))) {
      first_of_head_ = head.first;
      end_of_head_ = head.second;
      remark_ = there == nullptr
                    ? fmt::format("has no {}", spec.name)
                    : fmt::format("has {} as {}, and the model needs {}", spec.name, shown(*there), spec.shape.str());
      return;
    }
    if (there == nullptr) throw_user_error("{}: {}: it has no tensor {}, which the model needs", kKey, file, spec.name);
    throw_user_error("{}: {}: tensor {} is {} but the model needs F32 {}", kKey, file, spec.name, shown(*there),
                     spec.shape.str());
  };
  for (int i = 0; i < static_cast<int>(network.params().size()); ++i) {
    check(network.params()[static_cast<size_t>(i)], i >= head.first && i < head.second);
  }
  for (const ParamSpec& spec : network.buffers()) check(spec, false);
  require_no_others(file_, ParamLayout(network.params()), ParamLayout(network.buffers()), network.ties(),
                    fmt::format("{}: {}", kKey, file));
  if (remark_.empty()) return;
  std::vector<std::string> names;
  for (int i = head.first; i < head.second; ++i) names.push_back(network.params()[static_cast<size_t>(i)].name);
  remark_ =
      fmt::format("{} {}: {} start anew, and all other tensors are taken", file, remark_, fmt::join(names, " and "));
}

void InitialWeights::load(const Arena& weights, const Arena& statistics) const {
  for (const Arena* arena : {&weights, &statistics}) {
    for (int i = 0; i < arena->layout().size(); ++i) {
      const bool is_new = arena == &weights && in_head(i);
      if (!is_new) file_.load(arena->layout().spec(i).name, arena->view(i), arena->device());
    }
  }
}

void require_initial_weights(const Config& as_written) {
  if (as_written.model.init_from.empty()) return;
  const Datasets sets = open_sets(as_written);
  const Config config = task_of(as_written).completed(as_written, sets);
  const InitialWeights initial(config.model.init_from, make_network(config.model, sets.train->sample()));
}

}  // namespace dgc
