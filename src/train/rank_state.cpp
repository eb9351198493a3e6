// The methods of Rank that save its state, and compare it with other ranks.
#include <algorithm>

#include "run/vocabulary_file.h"
#include "tensor/errors.h"
#include "train/rank.h"
#include "train/shared_problem.h"
#include "train/weights_file.h"

namespace dgc {
namespace {

// What a rank tells the others about a file it wrote.
struct FileRecord {
  uint64_t bytes = 0;
  char xxh64[16] = {};
};

template <typename Part>
std::string problem_of(const Part& part) {
  try {
    part();
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace

bool Rank::sound() const {
  const bool skipping = skipped_.in_row > 0 && memory_.record.read_control().loss_scale <= 1;
  return finite_loss_ && !skipping && all_finite(memory_.weights);
}

double Rank::wall_seconds() const {
  return earlier_seconds_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::string Rank::weights_xxh64() const { return dgc::weights_xxh64(memory_.weights); }

void Rank::check_replicas() {
  if (communicator_.size() == 1) return;
  const std::vector<uint64_t> mine = tensor_hashes(memory_.weights);
  std::vector<uint64_t> all(mine.size() * static_cast<size_t>(communicator_.size()));
  all_gather_host(communicator_, *device_, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t tensor = i % mine.size();
    DGC_CHECK(all[i] == all[tensor], fmt::format("step {}: the weights of rank {} differ from rank 0's in {}", step_,
                                                 i / mine.size(), memory_.params.spec(static_cast<int>(tensor)).name));
  }
}

// Ranks go on to the next part only when all of them have done the last one, so that a manifest is only written when
// all its files are there.
std::string Rank::save(const CheckpointStore& store, int64_t keep) {
  average_statistics();
  const bool first = communicator_.rank() == 0;
  const auto together = [&](const auto& part) { return shared_problem(communicator_, *device_, problem_of(part)); };
  std::vector<ManifestFile> own;
  std::string problem = together([&] {
    if (first) store.begin(step_);
  });
  if (!problem.empty()) return problem;
  problem = together([&] { own = save_workers(store); });
  if (problem.empty()) {
    const std::vector<ManifestFile> all = files_of_all(own);
    problem = together([&] {
      if (first) publish(store, keep, all);
    });
  }
  if (!problem.empty() && first) store.discard(step_);
  if (problem.empty() && at_best()) best_kept_ = step_;
  return problem;
}

// Each rank writes the files of its own workers.
std::vector<ManifestFile> Rank::save_workers(const CheckpointStore& store) {
  std::vector<ManifestFile> files;
  for (size_t w = 0; w < memory_.workers.size(); ++w) {
    std::vector<TensorSource> tensors;
    append_tensors(tensors, memory_.workers[w].statistics);
    const std::vector<RankMemory::MicroBatch>& parts = memory_.workers[w].micro_batches;
    for (size_t p = 0; p < parts.size(); ++p) append_tensors(tensors, parts[p].state, part_name("state", p) + ".");
    const bool is_first = group_of(static_cast<int64_t>(w)) == first_worker() + static_cast<int64_t>(w);
    for (const NamedState& state : memory_.optimizer->state()) {
      if (is_first && state.worker == static_cast<int>(w)) append_tensors(tensors, *state.arena, state.name + ".");
    }
    for (const NamedState& state : computation_->state()) {
      if (state.worker == static_cast<int>(w)) append_tensors(tensors, *state.arena, state.name + ".");
    }
    files.push_back(store.write(step_, worker_file(first_worker() + static_cast<int>(w)), tensors, *device_));
  }
  return files;
}

std::vector<ManifestFile> Rank::files_of_all(const std::vector<ManifestFile>& own) {
  std::vector<FileRecord> local;
  for (const ManifestFile& file : own) {
    local.push_back({.bytes = file.bytes});
    std::ranges::copy(file.xxh64, local.back().xxh64);
  }
  std::vector<FileRecord> all(static_cast<size_t>(workers()));
  all_gather_host(communicator_, *device_, std::as_bytes(std::span(local)), std::as_writable_bytes(std::span(all)));
  std::vector<ManifestFile> files;
  for (const FileRecord& record : all) {
    const std::string hash(record.xxh64, sizeof(record.xxh64));
    files.push_back({worker_file(static_cast<int>(files.size())), record.bytes, hash});
  }
  return files;
}

void Rank::publish(const CheckpointStore& store, int64_t keep, const std::vector<ManifestFile>& worker_files) {
  Manifest manifest{.step = step_, .epoch = position_ / steps_per_epoch_, .values = {}, .files = {}};
  manifest.values.set("workers", static_cast<int64_t>(workers()));
  manifest.values.set("steps_per_epoch", steps_per_epoch_);
  manifest.values.set("position", position_);
  manifest.values.set("flushed", flushed_);
  if (owes_evaluation_) manifest.values.set(kOwesEvaluation, true);
  if (unexchanged() > 0) manifest.values.set(kUnexchanged, unexchanged());
  const StepControl control = memory_.record.read_control();
  manifest.values.set("loss_scale", static_cast<double>(control.loss_scale));
  manifest.values.set("good_steps", static_cast<int64_t>(control.good_steps));
  manifest.values.set("skipped", control.skip != 0);
  manifest.values.set(kSkippedInRow, skipped_.in_row);
  if (config_.exchange.every_steps > 1) manifest.values.set(kSkippedExchanges, skipped_.exchanges);
  manifest.values.set(kSound, sound());
  manifest.values.set("wall_seconds", wall_seconds());
  manifest.values.set("plateau_best", plateau_.best);
  manifest.values.set("plateau_bad", plateau_.bad);
  manifest.values.set("plateaus", plateau_.plateaus);
  if (config_.checkpoint.best || config_.training.stop_after) {
    manifest.values.set("best_loss", best_.loss);
    manifest.values.set(kBestStep, best_.step);
    manifest.values.set(kBestKept, at_best() ? step_ : best_kept_);
    manifest.values.set(kSinceBest, best_.since);
  }
  if (!conv_plans_xxh64_.empty()) manifest.values.set("conv_plans_xxh64", conv_plans_xxh64_);
  if (!data_.train_xxh64.empty()) manifest.values.set(kTrainingSet, data_.train_xxh64);
  if (data_.vocabulary != nullptr) manifest.values.set("vocabulary_xxh64", vocabulary_xxh64(*data_.vocabulary));
  manifest.files.push_back(save_weights(store, {memory_.weights, memory_.mean_statistics, step_, network_.ties()}));
  std::vector<TensorSource> shared;
  for (const NamedState& state : memory_.optimizer->state()) {
    if (state.worker < 0) append_tensors(shared, *state.arena, state.name + ".");
  }
  manifest.files.push_back(store.write(step_, kSharedFile, shared, *device_));
  manifest.files.insert(manifest.files.end(), worker_files.begin(), worker_files.end());
  store.commit(manifest, keep);
}

}  // namespace dgc
