// What a rank saves, restores and compares with the others.
#include <xxhash.h>

#include <algorithm>

#include "tensor/errors.h"
#include "train/rank.h"

namespace dgc {
namespace {

constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";

std::string worker_file(int worker) { return fmt::format("worker-{:04}.safetensors", worker); }

void append(std::vector<TensorSource>& to, const Arena& arena, const std::string& prefix = "") {
  for (int i = 0; i < arena.layout().size(); ++i) {
    to.push_back({.name = prefix + arena.layout().spec(i).name, .view = arena.view(i)});
  }
}

void load(const SafetensorsFile& file, const Arena& arena, const std::string& prefix = "") {
  for (int i = 0; i < arena.layout().size(); ++i) {
    file.load(prefix + arena.layout().spec(i).name, arena.view(i), arena.device());
  }
}

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

// What a rank tells rank 0 about a file it wrote.
struct FileRecord {
  uint64_t bytes = 0;
  char xxh64[16] = {};
};

}  // namespace

std::vector<uint64_t> Rank::tensor_hashes() const {
  std::vector<uint64_t> hashes;
  std::vector<float> host;
  for (int i = 0; i < params_.size(); ++i) {
    host.resize(static_cast<size_t>(params_.numel(i)));
    device_->copy_out(host.data(), weights_.view(i).data, host.size() * sizeof(float));
    hashes.push_back(XXH64(host.data(), host.size() * sizeof(float), 0));
  }
  return hashes;
}

std::string Rank::weights_xxh64() const {
  const std::vector<uint64_t> hashes = tensor_hashes();
  return xxh64_hex(hashes.data(), hashes.size() * sizeof(uint64_t));
}

void Rank::check_replicas() {
  if (communicator_.size() == 1) return;
  const std::vector<uint64_t> mine = tensor_hashes();
  std::vector<uint64_t> all(mine.size() * static_cast<size_t>(communicator_.size()));
  communicator_.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t tensor = i % mine.size();
    DGC_CHECK(all[i] == all[tensor], fmt::format("step {}: the weights of rank {} differ from rank 0's in {}", step_,
                                                 i / mine.size(), params_.spec(static_cast<int>(tensor)).name));
  }
}

void Rank::save(const CheckpointStore& store, int64_t keep) {
  average_statistics();
  if (communicator_.rank() == 0) store.begin();
  communicator_.barrier();

  const std::vector<NamedState> optimizer = optimizer_->state();
  std::vector<FileRecord> local;
  for (size_t w = 0; w < workers_.size(); ++w) {
    std::vector<TensorSource> tensors;
    append(tensors, workers_[w].statistics);
    for (const NamedState& state : optimizer) {
      if (state.worker == static_cast<int>(w)) append(tensors, *state.arena, state.name + ".");
    }
    const ManifestFile file = store.write(worker_file(first_worker() + static_cast<int>(w)), tensors, *device_);
    local.push_back({.bytes = file.bytes});
    std::ranges::copy(file.xxh64, local.back().xxh64);
  }
  std::vector<FileRecord> all(static_cast<size_t>(workers()));
  communicator_.all_gather(std::as_bytes(std::span(local)), std::as_writable_bytes(std::span(all)));
  if (communicator_.rank() != 0) return;

  Manifest manifest{.step = step_, .epoch = step_ / steps_per_epoch_, .values = {}, .files = {}};
  manifest.values.set("workers", static_cast<int64_t>(workers()));
  manifest.values.set("plateau_best", plateau_.best);
  manifest.values.set("plateau_bad", plateau_.bad);
  manifest.values.set("plateaus", plateau_.plateaus);
  std::vector<TensorSource> weights, shared;
  append(weights, weights_);
  append(weights, mean_statistics_);
  append_batch_counts(weights, statistics_, step_);
  manifest.files.push_back(store.write(kWeights, weights, *device_));
  for (const NamedState& state : optimizer) {
    if (state.worker < 0) append(shared, *state.arena, state.name + ".");
  }
  manifest.files.push_back(store.write(kOptimizer, shared, *device_));
  for (size_t w = 0; w < all.size(); ++w) {
    manifest.files.push_back(
        {worker_file(static_cast<int>(w)), all[w].bytes, std::string(all[w].xxh64, sizeof(all[w].xxh64))});
  }
  store.commit(manifest, keep);
}

void Rank::restore(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest();
  const int64_t saved_workers = manifest.values.integer("workers").value_or(0);
  if (saved_workers != workers()) {
    throw_user_error("checkpoint {} is of {} workers and the config has {}: resume with as many",
                     checkpoint.path().string(), saved_workers, workers());
  }
  load_weights(checkpoint);
  const std::vector<NamedState> optimizer = optimizer_->state();
  const SafetensorsFile shared = checkpoint.open(kOptimizer);
  for (const NamedState& state : optimizer) {
    if (state.worker < 0) load(shared, *state.arena, state.name + ".");
  }
  for (size_t w = 0; w < workers_.size(); ++w) {
    const SafetensorsFile own = checkpoint.open(worker_file(first_worker() + static_cast<int>(w)));
    load(own, workers_[w].statistics);
    for (const NamedState& state : optimizer) {
      if (state.worker == static_cast<int>(w)) load(own, *state.arena, state.name + ".");
    }
  }
  plateau_ = {.best = manifest.values.number("plateau_best").value_or(PlateauState{}.best),
              .bad = manifest.values.integer("plateau_bad").value_or(0),
              .plateaus = manifest.values.integer("plateaus").value_or(0)};
  step_ = manifest.step;
}

void Rank::load_weights(const Checkpoint& checkpoint) {
  const SafetensorsFile weights = checkpoint.open(kWeights);
  load(weights, weights_);
  load(weights, mean_statistics_);
  for (const Worker& worker : workers_) load(weights, worker.statistics);
}

}  // namespace dgc
