#pragma once

#include <span>
#include <vector>

#include "optim/dgc/layout.h"

namespace dgc {

// Compressed tensors that travel as one message. A bucket makes messages of the local workers' gradients, exchanges
// them, and applies all workers' messages to the weights.
class Bucket {
 public:
  explicit Bucket(const OptimizerContext& context) : context_(context) {}

  // first_guess: index of the bucket's first guess among those of a worker. Makes room for the local workers' messages
  // and, if messages travel, for those of all workers, which allocates only if messages are larger than any before.
  // Allocates the layout's tables.
  void prepare(DgcBucketLayout layout, size_t first_guess);
  const DgcLayout& layout() const { return layout_.layout; }
  int first_param() const { return layout_.first_param; }  // see DgcBucketLayout

  // Queued. `rule` has all fields but the table, the header and the message; rule.guesses are those of the whole
  // worker.
  void compress(int local_worker, DgcCompressArgs rule) const;
  std::byte* message(int local_worker) const { return canonical_.of(local_worker); }  // canonical

  // Collective; queued. Brings all workers' messages to every rank.
  void exchange(const StepControl*);
  // Two calls in the place of exchange(), for a caller that carries messages itself, in host memory and as they travel.
  // copy_out() waits for the device. place() takes those of all workers; in the place of a null it puts the message of
  // a worker that compresses zeros. It overwrites the local workers' messages. zeros: an arena, which stays as it is.
  void copy_out(int local_worker, std::byte* message) const;
  void place(std::span<const std::byte* const> from, float* zeros, const StepControl*);
  // Queued on the given backend. Applies the messages that exchange() has brought; `args` has all fields but the table,
  // the header and the messages.
  void apply(Backend&, DgcApplyArgs args) const;

 private:
  // Messages in one form, canonical or coded.
  struct Messages {
    size_t bytes = 0;  // size of one message
    Buffer mine;       // the local workers' messages, one after another
    Buffer all;        // all workers' messages, in worker order; empty with one rank
    std::byte* of(int local_worker) const {
      return static_cast<std::byte*>(mine.data()) + bytes * static_cast<size_t>(local_worker);
    }
  };
  void make_room(Messages&, size_t bytes) const;
  const std::byte* gather(const Messages&) const;
  const Messages& travelling() const { return layout().is_coded() ? coded_ : canonical_; }
  const std::byte* decode(const std::byte* coded, const StepControl*) const;
  void encode(const WireHeader&, std::byte* message, float* v, const StepControl*, std::byte* coded) const;

  OptimizerContext context_;
  DgcBucketLayout layout_;
  DgcTables tables_;
  size_t first_guess_ = 0;
  Messages canonical_;
  Messages coded_;                     // the messages as they travel; used only by a coded layout
  std::vector<std::byte> zeros_sent_;  // canonical, without a header; empty until place() has needed it
  const std::byte* messages_ = nullptr;
};

// All buckets, in the order in which they are exchanged.
class Buckets {
 public:
  explicit Buckets(const OptimizerContext& context) : context_(context) {}

  // backend: the one on which the buckets compress and exchange; its device shares its memory with the
  // context's.
  void prepare(std::vector<DgcBucketLayout> layouts, Backend& backend);
  const std::vector<Bucket>& all() const { return buckets_; }
  std::vector<Bucket>& all() { return buckets_; }
  int64_t sent_bytes() const;  // bytes of the messages that each worker sends in a step

  // These call the function of the same name of each bucket in turn. rules: one per local worker. args.dense is applied
  // with the last bucket. A message that cannot be used keeps the buckets behind it from being applied.
  void compress(std::span<const DgcCompressArgs> rules) const;
  void exchange(const StepControl*);
  void apply(Backend&, DgcApplyArgs args) const;

 private:
  OptimizerContext context_;
  Backend* backend_ = nullptr;
  std::vector<Bucket> buckets_;
};

}  // namespace dgc
