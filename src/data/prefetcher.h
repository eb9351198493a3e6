#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/ahead.h"
#include "data/dataset.h"
#include "data/loader.h"

namespace dgc {

// What goes into a batch.
struct BatchPlan {
  int64_t step = 0, epoch = 0;
  int worker = 0;
  std::vector<int32_t> samples;
  std::optional<uint64_t> augment_seed;  // none: read without augmentation
};

// Batch number -> what goes into it. Called from several threads.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual int64_t count() const = 0;       // batches there are
  virtual int64_t batch_size() const = 0;  // samples in the largest
  virtual void plan(int64_t number, BatchPlan& out) const = 0;
};

// Every sample once, in order; the last batch may be smaller.
std::unique_ptr<const BatchSource> sequential_batches(int64_t samples, int64_t batch);

// Batches of a rank's workers by a Sampler: all of them at a step in worker order, then at the next step, without end.
struct WorkerBatches {
  int first_worker = 0, local_workers = 1;
  int64_t start_step = 0;
};
std::unique_ptr<const BatchSource> training_batches(std::unique_ptr<const Sampler>, const WorkerBatches&);

// Fills batches 0, 1, ... of a source ahead.
class Prefetcher {
 public:
  Prefetcher(const ImageDataset&, std::unique_ptr<const BatchSource>, const PrefetchOptions&);

  // Null past the last batch; valid until the next call. Throws what reading this batch threw, at every later call too.
  const Batch* next();

 private:
  struct Item {
    Batch batch;
    BatchPlan plan;
  };
  void fill(int64_t number, Item& item, const std::stop_token& stop) const;

  const ImageDataset& dataset_;
  std::unique_ptr<const BatchSource> source_;
  Ahead<Item> ahead_;  // last: its threads use the others
};

}  // namespace dgc
