#pragma once

#include <vector>

#include "optim/dgc_exchange.h"

namespace dgc {

// Compressed tensors that travel as one message: from the local workers' gradients to everyone's messages, and from
// there into the weights.
class DgcBucket {
 public:
  explicit DgcBucket(const OptimizerContext& context) : context_(context), exchange_(context) {}

  // first_guess: where its segments' guesses lie among a worker's.
  void prepare(DgcBucketLayout layout, size_t first_guess);
  const DgcLayout& layout() const { return layout_.layout; }
  int first_param() const { return layout_.first_param; }  // DgcBucketLayout

  // Queued. `rule` says all but the table, the header and the message; its guesses are those of the whole worker.
  void compress(int local_worker, DgcCompressArgs rule) const;
  const std::byte* message(int local_worker) const { return exchange_.message(local_worker); }  // canonical

  // Collective; queued.
  void exchange(const StepControl* control) { messages_ = exchange_.run(tables_, control); }
  // Queued on any backend. What exchange() has brought; `args` says all but the table, the header and the messages.
  void apply(Backend&, DgcApplyArgs args) const;

 private:
  OptimizerContext context_;
  DgcExchange exchange_;
  DgcBucketLayout layout_;
  DgcTables tables_;
  size_t first_guess_ = 0;
  const std::byte* messages_ = nullptr;
};

// All there are, in the order in which they are exchanged.
class DgcBuckets {
 public:
  explicit DgcBuckets(const OptimizerContext& context) : context_(context) {}

  // The backend is the one with which they compress and exchange, on the context's device.
  void prepare(std::vector<DgcBucketLayout> layouts, Backend& backend);
  const std::vector<DgcBucket>& all() const { return buckets_; }
  std::vector<DgcBucket>& all() { return buckets_; }
  int64_t sent_bytes() const;  // by each worker, as messages

  // As DgcBucket says, of each in turn. What travels dense takes its step with the last; a message that cannot be used
  // keeps those behind it from being applied.
  void compress(int local_worker, const DgcCompressArgs& rule) const;
  void exchange(const StepControl* control);
  void apply(Backend&, DgcApplyArgs args) const;

 private:
  OptimizerContext context_;
  Backend* backend_ = nullptr;
  std::vector<DgcBucket> buckets_;
};

}  // namespace dgc
