#pragma once

#include "tasks/task.h"
#include "tensor/errors.h"
#include "tests/support/run_files.h"
#include "train/rank.h"
#include "train/ranks/on_ranks.h"

// Steps without a run directory around them, and what they save.
namespace dgc::test {

// Runs body on each rank of a fresh run.
inline void on_ranks_of(const Config& written, const std::function<void(Rank&, Communicator&)>& body) {
  const Datasets sets = open_sets(written);
  const Config config = task_of(written).completed(written, sets);
  on_ranks(config, {}, [&](Backend& backend, Communicator& communicator) {
    Rank rank(config, sets.view(), backend, communicator);
    body(rank, communicator);
  });
}

inline StepMetrics step(Rank& rank) {
  rank.train_step();
  rank.finish_steps();
  return rank.next_metrics().value();
}

// Trains until the rank is at the step and returns the metrics of the exchanges on the way.
inline std::vector<StepMetrics> steps_up_to(Rank& rank, int64_t step) {
  std::vector<StepMetrics> rows;
  const auto take = [&] {
    while (const auto metrics = rank.next_metrics()) rows.push_back(*metrics);
  };
  while (rank.step() < step) {
    rank.train_step();
    take();
  }
  rank.finish_steps();
  take();
  return rows;
}

inline std::vector<StepMetrics> make_steps(Rank& rank, int steps) { return steps_up_to(rank, rank.step() + steps); }

// The values of one parameter, which may lie on a device whose memory the host cannot read.
inline std::vector<float> numbers(const Arena& arena, int parameter) {
  std::vector<float> values(static_cast<size_t>(arena.layout().numel(parameter)));
  arena.device().copy_out(values.data(), arena.view(parameter).data, values.size() * sizeof(float));
  return values;
}

// The values of all parameters, in turn.
inline std::vector<float> numbers(const Arena& arena) {
  std::vector<float> all;
  for (int i = 0; i < arena.layout().size(); ++i) {
    const std::vector<float> one = numbers(arena, i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

inline void set_number(const Arena& arena, int parameter, size_t element, float value) {
  arena.device().copy_in(arena.view(parameter).f32() + element, &value, sizeof value);
}

// The checksums of all that is saved, but for the manifest.
inline std::vector<std::string> save_and_hash(Rank& rank, const TempRun& run) {
  CheckpointStore store(run.path());
  const std::string problem = rank.save(store, 1);
  DGC_CHECK(problem.empty(), problem);
  std::vector<std::string> hashes;
  const auto checkpoint = newest_checkpoint(run.path());
  for (const ManifestFile& file : checkpoint->manifest().files) hashes.push_back(file.xxh64);
  return hashes;
}

struct RankOutcome {
  std::vector<std::string> saved;     // save_and_hash()
  std::vector<double> losses, norms;  // of each exchange
  bool operator==(const RankOutcome&) const = default;
};

// What some steps of a fresh run end in on rank 0, once all replicas have been found to agree.
inline RankOutcome outcome_after(const Config& config, int steps) {
  RankOutcome outcome;
  const TempRun run;
  on_ranks_of(config, [&](Rank& rank, Communicator& communicator) {
    const std::vector<StepMetrics> rows = make_steps(rank, steps);
    const std::vector<std::string> hashes = save_and_hash(rank, run);
    rank.check_replicas();
    if (communicator.rank() != 0) return;
    outcome.saved = hashes;
    for (const StepMetrics& row : rows) {
      outcome.losses.push_back(row.loss);
      outcome.norms.push_back(row.grad_norm);
    }
  });
  return outcome;
}

inline std::vector<float> loaded(const Checkpoint& checkpoint, const std::string& file, const std::string& tensor,
                                 const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.numel()));
  checkpoint.open(file).load(tensor, {values.data(), shape}, *make_cpu_device());
  return values;
}

}  // namespace dgc::test
