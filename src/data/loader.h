#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace dgc {

class Prefetcher;

// Training batches of a rank's workers: all of them at start_step in worker order, then at the next step, without end.
// The batches do not depend on the number of threads. The dataset must outlive it.
class Loader final : public Batches {
 public:
  Loader(const ImageDataset&, const LoaderOptions&);
  ~Loader() override;  // stops the threads: waits for at most the batch each has in hand

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  const Batch* next() override;  // never null

 private:
  int64_t steps_per_epoch_;
  std::unique_ptr<Prefetcher> prefetcher_;
};

// Every sample of a dataset once, in order, not augmented; the last batch may be smaller.
class EvalLoader final : public Batches {
 public:
  EvalLoader(const ImageDataset&, int64_t batch, const PrefetchOptions&);
  ~EvalLoader() override;

  const Batch* next() override;

 private:
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace dgc
