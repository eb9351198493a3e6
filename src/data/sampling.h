#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace dgc {

// Which worker trains on which samples; each micro-batch of a worker counts as a worker here. The order of an epoch is
// one permutation by (seed, epoch); a step takes the next workers * batch_per_worker samples of it, and worker w takes
// the w-th slice of these. So the global batch depends on the number of workers times their batch alone, and the
// position in the data is one counter, the global step.
struct Sampling {
  int64_t samples = 0, workers = 1, batch_per_worker = 1;
  uint64_t seed = 0;

  int64_t global_batch() const { return workers * batch_per_worker; }
  // The rest of an epoch that does not fill a global batch is dropped. Throws UserError if an epoch has no whole global
  // batch.
  int64_t steps_per_epoch() const;
};

// Looks up sample indices. Safe to call from several threads: an epoch's permutation is made once and shared.
class Sampler {
 public:
  // Returns an order of at least steps_per_epoch() * global_batch() samples. May be called again for the same epoch.
  using Ordering = std::function<std::vector<int32_t>(int64_t epoch)>;

  // Both throw as steps_per_epoch() does.
  explicit Sampler(const Sampling&);  // shuffled
  Sampler(const Sampling&, Ordering);

  const Sampling& sampling() const { return sampling_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t epoch(int64_t global_step) const { return global_step / steps_per_epoch_; }

  // Writes the batch_per_worker samples of one worker at global step epoch * steps_per_epoch + step.
  void indices(int64_t global_step, int64_t worker, std::vector<int32_t>& out) const;

 private:
  using Order = std::shared_ptr<const std::vector<int32_t>>;
  Order order(int64_t epoch) const;

  Sampling sampling_;
  Ordering ordering_;
  int64_t steps_per_epoch_;
  // Two orders are kept, because threads that read ahead are on both sides of an epoch's end for a while.
  mutable std::mutex mutex_;
  mutable Order orders_[2];
  mutable int64_t epochs_[2] = {-1, -1};
};

// The training batches of a rank: those of its workers at start_step, in worker order, then at the next step, without
// end.
struct WorkerBatches {
  Sampling sampling;
  int first_worker = 0, local_workers = 1;
  int64_t start_step = 0;  // global step = epoch * steps_per_epoch + step

  struct Place {
    int64_t step = 0;
    int worker = 0;
  };
  Place place(int64_t number) const;  // place of batch `number`, which counts from 0
};

// Which samples a batch has.
struct BatchPlan {
  int64_t step = 0, epoch = 0;  // step: as in Batch
  int worker = 0;
  std::vector<int32_t> samples{};
  std::optional<uint64_t> augment_seed{};  // none: read without augmentation
};

inline constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

// The plans of batches 0 ... count - 1. Safe to call from several threads.
struct BatchPlans {
  int64_t count = 0;
  std::function<BatchPlan(int64_t number)> plan;
};
BatchPlans training_plans(const WorkerBatches&, std::shared_ptr<const Sampler>);

// The batches of an evaluation that somebody computes: of all in order, number first, first + every, ...
struct EvaluationBatches {
  int64_t rows = 0;  // of a batch, as Dataset::evaluation_batches() counts them
  int64_t first = 0, every = 1;
};
// All of them together have every sample once, in order; the last batch may be smaller.
BatchPlans evaluation_plans(int64_t samples, const EvaluationBatches&);

}  // namespace dgc
