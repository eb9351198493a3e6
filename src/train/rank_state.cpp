// The methods of Rank that save its state, and compare it with other ranks.
#include <algorithm>

#include "run/conv_plans_file.h"
#include "run/vocabulary_file.h"
#include "tensor/errors.h"
#include "train/rank.h"
#include "train/ranks/shared_problem.h"
#include "train/saved_tensors.h"
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
  const bool skipping = state_.skipped.in_row > 0 && memory_.record.read_control().loss_scale <= 1;
  return finite_loss_ && !skipping && all_finite(memory_.weights);
}

double Rank::wall_seconds() const {
  return state_.wall_seconds + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::string Rank::weights_xxh64() const { return dgc::weights_xxh64(memory_.weights); }

void Rank::check_replicas() {
  if (communicator_.size() == 1) return;
  const std::vector<uint64_t> mine = tensor_hashes(memory_.weights);
  const std::vector<uint64_t> all = gather_host<uint64_t>(communicator_, *device_, mine);
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t tensor = i % mine.size();
    DGC_CHECK(all[i] == all[tensor],
              fmt::format("step {}: the weights of rank {} differ from rank 0's in {}", state_.step, i / mine.size(),
                          memory_.params.spec(static_cast<int>(tensor)).name));
  }
}

// Ranks go on to the next part only when all of them have done the last one, so that a manifest is only written when
// all its files are there.
std::string Rank::save(CheckpointStore& store, int64_t keep) {
  average_statistics();
  const bool first = communicator_.rank() == 0;
  const auto together = [&](const auto& part) { return shared_problem(communicator_, *device_, problem_of(part)); };
  std::vector<ManifestFile> own;
  std::string problem = together([&] {
    if (first) store.begin(state_.step);
  });
  if (!problem.empty()) return problem;
  problem = together([&] { own = save_workers(store); });
  if (problem.empty()) {
    const std::vector<ManifestFile> all = files_of_all(own);
    problem = together([&] {
      if (first) publish(store, keep, all);
    });
  }
  if (!problem.empty() && first) store.discard(state_.step);
  if (problem.empty() && at_best()) state_.best_kept = state_.step;
  return problem;
}

// Each rank writes the files of its own workers.
std::vector<ManifestFile> Rank::save_workers(const CheckpointStore& store) {
  std::vector<ManifestFile> files;
  for (int64_t local = 0; local < std::ssize(memory_.workers); ++local) {
    const int64_t worker = first_worker() + local;
    const std::vector<TensorSource> tensors =
        worker_tensors(states_of(memory_, *computation_, local), first_of_group(config_, worker) == worker);
    files.push_back(store.write(state_.step, worker_file(worker), tensors, *device_));
  }
  return files;
}

std::vector<ManifestFile> Rank::files_of_all(const std::vector<ManifestFile>& own) {
  std::vector<FileRecord> local;
  for (const ManifestFile& file : own) {
    local.push_back({.bytes = file.bytes});
    std::ranges::copy(file.xxh64, local.back().xxh64);
  }
  std::vector<ManifestFile> files;
  for (const FileRecord& record : gather_host<FileRecord>(communicator_, *device_, local)) {
    const std::string hash(record.xxh64, sizeof(record.xxh64));
    files.push_back({worker_file(static_cast<int>(files.size())), record.bytes, hash});
  }
  return files;
}

RunState Rank::state_to_save() const {
  RunState state = state_;
  state.workers = workers();
  state.threads = backend_.threads();
  state.steps_per_epoch = steps_per_epoch_;
  state.unexchanged = unexchanged();
  const StepControl control = memory_.record.read_control();
  state.loss_scale = control.loss_scale;
  state.good_steps = control.good_steps;
  state.skipped_last = control.skip != 0;
  state.sound = sound();
  state.wall_seconds = wall_seconds();
  if (at_best()) state.best_kept = state.step;
  return state;
}

void Rank::publish(CheckpointStore& store, int64_t keep, const std::vector<ManifestFile>& worker_files) {
  const RunState saved = state_to_save();
  Manifest manifest{.step = saved.step, .epoch = saved.position / saved.steps_per_epoch, .values = {}, .files = {}};
  manifest.values = to_values(saved, config_.checkpoint.best || config_.training.stop_after);
  manifest.values.set(kArithmetic, backend_.arithmetic());
  if (!conv_plans_xxh64_.empty()) manifest.values.set(kConvPlans, conv_plans_xxh64_);
  if (!data_.train_xxh64.empty()) manifest.values.set(kTrainingSet, data_.train_xxh64);
  if (data_.vocabulary != nullptr) manifest.values.set(kVocabulary, vocabulary_xxh64(*data_.vocabulary));
  manifest.files.push_back(
      save_weights(store, {memory_.weights, memory_.mean_statistics, state_.step, network_.ties()}));
  manifest.files.push_back(store.write(state_.step, kSharedFile, shared_tensors(*memory_.optimizer), *device_));
  manifest.files.insert(manifest.files.end(), worker_files.begin(), worker_files.end());
  store.commit(manifest, keep);
}

}  // namespace dgc
