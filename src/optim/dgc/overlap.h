#pragma once

#include "optim/dgc/gather.h"

namespace dgc {

// What OverlappedGather keeps from one layout to the next. While the messages of a step are made it is not known
// whether the step is skipped, so u and v exist twice: as they were before the step, and as the step makes them.
class OverlapMemory {
 public:
  OverlapMemory(const OptimizerContext&, std::vector<Residuals> residuals);  // by local worker

  struct Before {
    Arena v;
    std::optional<Arena> u;
  };
  const std::vector<Residuals>& residuals() const { return residuals_; }
  const std::vector<Before>& before() const { return before_; }  // u and v before the step, by local worker
  void turn();  // swaps both: what is held becomes what the step starts from, and the step writes the other one
  uint64_t side() const { return side_; }  // 0 or 1; each turn() changes it
  OverlapTotals* totals() const { return static_cast<OverlapTotals*>(totals_.data()); }  // device memory
  ExchangeTime time() const;  // waits until all steps so far are done
  Lane& lane() const { return *lane_; }

 private:
  std::vector<Residuals> residuals_;
  std::vector<Before> before_;
  uint64_t side_ = 0;
  Buffer totals_;
  std::unique_ptr<Lane> lane_;  // declared last, so destroyed first: its tasks use the members above
};

// A gather whose messages are made and exchanged in a lane, bucket by bucket, while gradients are still being computed.
// OverlapMemory::turn() runs on the host before every step, because the replay of a recorded step cannot swap memory.
class OverlappedGather final : public Exchange {
 public:
  // Prepares the buckets on the lane's backend. All arguments but the layout must outlive every step that has begun and
  // not settled.
  OverlappedGather(const OptimizerContext&, Buckets&, const DgcLayout&, OverlapMemory&);

  uint64_t turn() override;
  void begin(const MakeRules&) override;
  void ready(int local_worker, int first_param) override;
  void settle() override;
  bool overlaps() const override { return true; }
  // Restores the old u and v if the step is skipped, and in any case the elements of v that are not compressed.
  void compress(const MakeRules&) override;
  // Between run() and apply() the caller exchanges the dense tensors, which nothing hides. That time is measured too.
  void run(const StepArgs&, DgcApplyArgs& apply) override;
  void apply(const DgcApplyArgs&) override;
  int64_t sent_bytes() const override { return gather_.sent_bytes(); }

 private:
  void compress_bucket(int local_worker, size_t bucket) const;
  // There is a span for each local worker and bucket, then one from run() to apply(), then one that begins when the
  // step begins to wait for the lane.
  OverlapSpan* span(size_t i) const { return static_cast<OverlapSpan*>(spans_.data()) + i; }
  size_t tasks() const { return memory_.residuals().size() * buckets_.size(); }

  OptimizerContext context_;
  OverlapMemory& memory_;
  Gather gather_;
  std::vector<Bucket>& buckets_;
  int64_t compressed_extent_;
  std::vector<DgcCompressArgs> rules_;  // by local worker
  std::vector<size_t> handed_;          // buckets handed to the lane in this step, by local worker
  bool is_settled_ = false;
  Buffer spans_;
};

}  // namespace dgc
