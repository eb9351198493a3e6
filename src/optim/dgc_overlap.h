#pragma once

#include <vector>

#include "optim/dgc_bucket.h"

namespace dgc {

// Compresses and exchanges buckets in a lane while gradients are still being computed. Whether the step is skipped is
// not known yet, so there is memory twice for u and v: for what they were and for what the step makes of them. Which is
// which changes on the host before every step, as a recorded step could not do it.
class DgcOverlap {
 public:
  // What a worker holds back after a step.
  struct Held {
    Arena* v = nullptr;
    Arena* u = nullptr;  // null: there is none
  };
  DgcOverlap(const OptimizerContext&, std::vector<Held> held);  // by local worker

  // Prepares the buckets, which from then on are the lane's; they must outlive settle().
  void lay_out(DgcBuckets& buckets, std::vector<DgcBucketLayout> layouts);

  // Before every step, once: what is held becomes what the step starts from, and gives its place to what comes of it.
  void turn();
  uint64_t side() const { return side_; }  // 0 or 1: which memory is which

  // The step begins: buckets are compressed by these rules, one per local worker, which say where u and v go.
  void begin(std::vector<DgcCompressArgs> rules);
  void ready(int local_worker, int first_param);  // as Optimizer's, and so is settle()
  void settle();
  // Then, once the step is judged: what is held is what it was if the step is skipped. Elements from compressed_extent
  // on are not the buckets', and are what they were in any case.
  void take_back_if_skipped(int local_worker, const StepControl* control, int64_t compressed_extent);
  // Around what is exchanged after that, which nothing hides.
  void begin_rest();
  void end_rest();

  ExchangeTime time() const;  // of all steps so far; waits for them

 private:
  struct Before {
    Arena v;
    std::optional<Arena> u;
  };
  void compress(int local_worker, size_t bucket) const;
  // One for each worker and bucket, then the rest's, then one that begins when the step begins to wait.
  OverlapSpan* span(size_t i) const { return static_cast<OverlapSpan*>(spans_.data()) + i; }
  size_t tasks() const { return held_.size() * buckets_->size(); }

  OptimizerContext context_;
  std::vector<Held> held_;
  std::vector<Before> before_;  // per local worker, as are the next two
  std::vector<DgcCompressArgs> rules_;
  std::vector<size_t> handed_;  // buckets, in this step
  std::vector<DgcBucket>* buckets_ = nullptr;
  uint64_t side_ = 0;
  bool is_settled_ = false;
  Buffer spans_, totals_;
  std::unique_ptr<Lane> lane_;  // last: its tasks end before what they use
};

}  // namespace dgc
