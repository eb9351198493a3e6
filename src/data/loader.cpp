#include "data/loader.h"

#include <algorithm>
#include <limits>

#include "data/prefetcher.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Step-major, then by worker.
class TrainingBatches final : public BatchSource {
 public:
  explicit TrainingBatches(const LoaderOptions& o)
      : sampler_(o.sampling),
        first_worker_(o.first_worker),
        local_workers_(o.local_workers),
        start_step_(o.start_step) {
    DGC_CHECK(first_worker_ >= 0 && local_workers_ >= 1 && first_worker_ + local_workers_ <= o.sampling.workers,
              "a rank's workers are among all workers");
    DGC_CHECK(start_step_ >= 0, "start_step");
  }

  int64_t count() const override { return std::numeric_limits<int64_t>::max(); }
  int64_t batch_size() const override { return sampler_.sampling().batch_per_worker; }
  void plan(int64_t number, BatchPlan& out) const override {
    out.step = start_step_ + number / local_workers_;
    out.worker = first_worker_ + static_cast<int>(number % local_workers_);
    out.epoch = sampler_.epoch(out.step);
    out.augment_seed = sampler_.sampling().seed;
    sampler_.indices(out.step, out.worker, out.samples);
  }

 private:
  Sampler sampler_;
  int first_worker_, local_workers_;
  int64_t start_step_;
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

Loader::Loader(const ImageDataset& dataset, const LoaderOptions& options)
    : steps_per_epoch_(options.sampling.steps_per_epoch()),
      prefetcher_(std::make_unique<Prefetcher>(dataset, std::make_unique<TrainingBatches>(options), options.prefetch)) {
  DGC_CHECK(options.sampling.samples <= dataset.size(), "samples in the dataset");
}

Loader::~Loader() = default;

const Batch* Loader::next() { return prefetcher_->next(); }

EvalLoader::EvalLoader(const ImageDataset& dataset, int64_t batch, const PrefetchOptions& options)
    : prefetcher_(
          std::make_unique<Prefetcher>(dataset, std::make_unique<SequentialBatches>(dataset.size(), batch), options)) {}

EvalLoader::~EvalLoader() = default;

const Batch* EvalLoader::next() { return prefetcher_->next(); }

std::unique_ptr<Batches> ImageDataset::training_batches(const LoaderOptions& options) const {
  return std::make_unique<Loader>(*this, options);
}

std::unique_ptr<Batches> ImageDataset::evaluation_batches(int64_t rows, const PrefetchOptions& options) const {
  return std::make_unique<EvalLoader>(*this, rows, options);
}

}  // namespace dgc
