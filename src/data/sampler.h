#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace dgc {

// Who trains on what. The order of an epoch is one permutation by (seed, epoch); a step takes the next consecutive
// workers * batch_per_worker of it, and worker w the w-th slice. So the global batch depends on the number of workers
// times their batch alone, and the position in the data is one counter, the global step.
struct Sampling {
  int64_t samples = 0, workers = 1, batch_per_worker = 1;
  uint64_t seed = 0;

  int64_t global_batch() const { return workers * batch_per_worker; }
  // The rest of an epoch, less than a global batch, is dropped. Throws UserError when that is everything.
  int64_t steps_per_epoch() const;
};

// Looks up sample indices. Safe to call from several threads: an epoch's permutation is made once and shared.
class Sampler {
 public:
  // Epoch -> an order of at least steps_per_epoch() * global_batch() samples. It may be asked again for an epoch.
  using Ordering = std::function<std::vector<int32_t>(int64_t epoch)>;

  explicit Sampler(const Sampling&);  // shuffled; throws UserError as steps_per_epoch() does
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
  // Two: threads that read ahead stand on both sides of an epoch's end for a while.
  mutable std::mutex mutex_;
  mutable Order orders_[2];
  mutable int64_t epochs_[2] = {-1, -1};
};

}  // namespace dgc
