#pragma once

#include <span>
#include <vector>

#include "optim/dgc/layout.h"

namespace dgc {

// Compressed tensors that travel as one message: from the local workers' gradients to everyone's messages, and from
// there into the weights.
class Bucket {
 public:
  explicit Bucket(const OptimizerContext& context) : context_(context) {}

  // first_guess: where its segments' guesses lie among a worker's. Makes room for the local workers' messages, and for
  // everyone's where they travel; allocates only when they are larger than any before.
  void prepare(DgcBucketLayout layout, size_t first_guess);
  const DgcLayout& layout() const { return layout_.layout; }
  int first_param() const { return layout_.first_param; }  // DgcBucketLayout

  // Queued. `rule` says all but the table, the header and the message; its guesses are those of the whole worker.
  void compress(int local_worker, DgcCompressArgs rule) const;
  std::byte* message(int local_worker) const { return canonical_.of(local_worker); }  // canonical

  // Collective; queued. Brings all workers' messages together.
  void exchange(const StepControl*);
  // Queued on any backend. What exchange() has brought; `args` says all but the table, the header and the messages.
  void apply(Backend&, DgcApplyArgs args) const;

 private:
  // Messages in one form.
  struct Messages {
    size_t bytes = 0;  // of one message
    Buffer mine;       // the local workers' messages, one after another
    Buffer all;        // all workers' messages, in worker order; empty with one rank
    std::byte* of(int local_worker) const {
      return static_cast<std::byte*>(mine.data()) + bytes * static_cast<size_t>(local_worker);
    }
  };
  void make_room(Messages&, size_t bytes) const;
  const std::byte* gather(const Messages&) const;

  OptimizerContext context_;
  DgcBucketLayout layout_;
  DgcTables tables_;
  size_t first_guess_ = 0;
  Messages canonical_;
  Messages coded_;  // as they travel, where that is another form
  const std::byte* messages_ = nullptr;
};

// All buckets, in the order in which they are exchanged.
class Buckets {
 public:
  explicit Buckets(const OptimizerContext& context) : context_(context) {}

  // The backend is the one with which they compress and exchange, on the context's device.
  void prepare(std::vector<DgcBucketLayout> layouts, Backend& backend);
  const std::vector<Bucket>& all() const { return buckets_; }
  std::vector<Bucket>& all() { return buckets_; }
  int64_t sent_bytes() const;  // by each worker, as messages

  // As Bucket says, of each in turn; one rule per local worker. What travels dense takes its step with the last bucket;
  // a message that cannot be used keeps those behind it from being applied.
  void compress(std::span<const DgcCompressArgs> rules) const;
  void exchange(const StepControl*);
  void apply(Backend&, DgcApplyArgs args) const;

 private:
  OptimizerContext context_;
  Backend* backend_ = nullptr;
  std::vector<Bucket> buckets_;
};

}  // namespace dgc
