#include <algorithm>
#include <limits>

#include "data/prefetcher.h"
#include "data/sampler.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Step-major, then by worker.
class TrainingBatches final : public BatchSource {
 public:
  TrainingBatches(std::unique_ptr<const Sampler> sampler, const WorkerBatches& workers)
      : sampler_(std::move(sampler)), workers_(workers) {
    DGC_CHECK(workers_.first_worker >= 0 && workers_.local_workers >= 1 &&
                  workers_.first_worker + workers_.local_workers <= sampler_->sampling().workers,
              "a rank's workers are among all workers");
    DGC_CHECK(workers_.start_step >= 0, "start_step");
  }

  int64_t count() const override { return std::numeric_limits<int64_t>::max(); }
  int64_t batch_size() const override { return sampler_->sampling().batch_per_worker; }
  void plan(int64_t number, BatchPlan& out) const override {
    out.step = workers_.start_step + number / workers_.local_workers;
    out.worker = workers_.first_worker + static_cast<int>(number % workers_.local_workers);
    out.epoch = sampler_->epoch(out.step);
    out.augment_seed = sampler_->sampling().seed;
    sampler_->indices(out.step, out.worker, out.samples);
  }

 private:
  std::unique_ptr<const Sampler> sampler_;
  WorkerBatches workers_;
};

class SequentialBatches final : public BatchSource {
 public:
  SequentialBatches(int64_t samples, int64_t batch) : samples_(samples), batch_(batch) {
    DGC_CHECK(batch >= 1, "batch size");
  }

  int64_t count() const override { return (samples_ + batch_ - 1) / batch_; }
  int64_t batch_size() const override { return std::min(batch_, samples_); }
  void plan(int64_t number, BatchPlan& out) const override {
    out.step = number;
    out.samples.clear();
    const int64_t end = std::min(samples_, (number + 1) * batch_);
    for (int64_t i = number * batch_; i < end; ++i) out.samples.push_back(static_cast<int32_t>(i));
  }

 private:
  int64_t samples_, batch_;
};

}  // namespace

std::unique_ptr<const BatchSource> sequential_batches(int64_t samples, int64_t batch) {
  return std::make_unique<SequentialBatches>(samples, batch);
}

std::unique_ptr<const BatchSource> training_batches(std::unique_ptr<const Sampler> sampler,
                                                    const WorkerBatches& workers) {
  return std::make_unique<TrainingBatches>(std::move(sampler), workers);
}

}  // namespace dgc
