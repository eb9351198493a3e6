#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

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

// Fills batches 0, 1, ... of a source in background threads and hands them out in order. The slots form a ring: batch n
// lives in slot n % slots, and its memory is used again once the caller has moved on. A thread takes the lowest batch
// nobody has taken and fills all of it, so the content does not depend on the threads.
class Prefetcher {
 public:
  Prefetcher(const ImageDataset&, std::unique_ptr<const BatchSource>, const PrefetchOptions&);
  ~Prefetcher();

  // Null past the last batch; valid until the next call. Throws what reading this batch threw, at every later call too.
  const Batch* next();

 private:
  struct Slot {
    Batch batch;
    BatchPlan plan;
    bool ready = false;
    std::exception_ptr error;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  void run(const std::stop_token& stop);
  void fill(int64_t number, Slot& slot, const std::stop_token& stop) const;

  const ImageDataset& dataset_;
  std::unique_ptr<const BatchSource> source_;
  std::vector<Slot> slots_;

  std::mutex mutex_;  // guards what follows, and every slot's ready
  std::condition_variable_any room_, ready_;
  int64_t taken_ = 0;    // batches that threads have begun
  int64_t current_ = 0;  // batch that the caller has, or gets next
  bool handed_out_ = false;
  std::vector<std::jthread> threads_;  // last: they stop before anything they use goes away
};

}  // namespace dgc
