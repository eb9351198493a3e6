#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/ahead.h"
#include "data/dataset.h"
#include "data/sampler.h"

namespace dgc {

struct Batch {
  int64_t step = 0;             // global step in training; number of the batch in evaluation
  int worker = 0;               // in [first_worker, first_worker + local_workers)
  std::vector<float> images;    // [b, height, width, channels]
  std::vector<int32_t> labels;  // [b]
};

struct LoaderOptions {
  Sampling sampling;
  int first_worker = 0, local_workers = 1;  // the workers of this rank
  int64_t start_step = 0;                   // global step = epoch * steps_per_epoch + step
  PrefetchOptions prefetch;
};

class Prefetcher;

// Training batches of a rank's workers: all of them at start_step in worker order, then at the next step, without end.
// The batches do not depend on the number of threads. The dataset must outlive it.
class Loader {
 public:
  Loader(const ImageDataset&, const LoaderOptions&);
  ~Loader();  // stops the threads: waits for at most the batch each has in hand

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // Valid until the next call. Throws what reading this batch threw, now and at every later call.
  const Batch& next();

 private:
  int64_t steps_per_epoch_;
  std::unique_ptr<Prefetcher> prefetcher_;
};

// Every sample of a dataset once, in order, not augmented; the last batch may be smaller.
class EvalLoader {
 public:
  EvalLoader(const ImageDataset&, int64_t batch, const PrefetchOptions&);
  ~EvalLoader();

  const Batch* next();  // null when there is no more; valid until the next call

 private:
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace dgc
