#pragma once

#include "optim/dgc/gather.h"

namespace dgc {

// What overlapping keeps from one layout to the next. Whether a step is skipped is not known while its messages are
// made, so there is memory twice for u and v: for what they were and for what the step makes of them.
class OverlapMemory {
 public:
  OverlapMemory(const OptimizerContext&, std::vector<HeldBack> held);  // by local worker

  struct Before {
    Arena v;
    std::optional<Arena> u;
  };
  const std::vector<HeldBack>& held() const { return held_; }
  const std::vector<Before>& before() const { return before_; }  // what the step starts from, by local worker
  void turn();  // what is held becomes what the step starts from, and gives its place to what comes of it
  uint64_t side() const { return side_; }  // 0 or 1: which memory is which
  OverlapTotals* totals() const { return static_cast<OverlapTotals*>(totals_.data()); }  // device memory
  ExchangeTime time() const;                                                             // waits for the steps so far
  Lane& lane() const { return *lane_; }

 private:
  std::vector<HeldBack> held_;
  std::vector<Before> before_;
  uint64_t side_ = 0;
  Buffer totals_;
  std::unique_ptr<Lane> lane_;  // destroyed first: its tasks use the memory
};

// A gather whose messages are made and exchanged in a lane, bucket by bucket, while gradients are still being computed.
// Which memory is which changes on the host before every step, as a recorded step could not do it.
class OverlappedGather final : public Exchange {
 public:
  // Buckets that are prepared here are the lane's. All must outlive what has begun and not settled.
  OverlappedGather(const OptimizerContext&, Buckets&, const DgcLayout&, OverlapMemory&);

  uint64_t turn() override;
  void begin(const MakeRules&) override;
  void ready(int local_worker, int first_param) override;
  void settle() override;
  // What is held is what it was if the step is skipped; in any case so are the elements that are not compressed.
  void compress(const MakeRules&) override;
  // Between the two the caller exchanges what nothing hides: its time is measured too.
  void run(const StepArgs&, DgcApplyArgs& apply) override;
  void apply(const DgcApplyArgs&) override;
  int64_t sent_bytes() const override { return gather_.sent_bytes(); }

 private:
  void compress_bucket(int local_worker, size_t bucket) const;
  // One for each worker and bucket, then the rest's, then one that begins when the step begins to wait.
  OverlapSpan* span(size_t i) const { return static_cast<OverlapSpan*>(spans_.data()) + i; }
  size_t tasks() const { return memory_.held().size() * buckets_.size(); }

  OptimizerContext context_;
  OverlapMemory& memory_;
  Gather gather_;
  std::vector<Bucket>& buckets_;
  int64_t compressed_extent_;
  std::vector<DgcCompressArgs> rules_;  // by local worker
  std::vector<size_t> handed_;          // buckets in this step, by local worker
  bool is_settled_ = false;
  Buffer spans_;
};

}  // namespace dgc
