#pragma once

#include "optim/dgc/exchange.h"

namespace dgc {

// Brings together what all workers have selected, so that what reaches a worker does not grow with their number: every
// worker adds up one shard, in worker order, and sends its largest sums to all (docs/exchange.md). What is dropped on
// the way stays in the v of the worker that selected it. Shards belong to workers, not ranks: bits do not depend on how
// workers are spread over ranks.
class SplitReduce final : public Exchange {
 public:
  // The layout's `split` is set.
  SplitReduce(const OptimizerContext&, Buckets&, const DgcLayout&);

  // u is masked in the end, where what was selected has been sent.
  void compress(const MakeRules&) override;
  // An owner's message that cannot be used sets the control's fault.
  void run(const StepArgs&, DgcApplyArgs& apply) override;
  void apply(const DgcApplyArgs&) override;
  int64_t sent_bytes() const override { return layout_.sent_bytes(); }

 private:
  int local_workers() const { return context_.local_workers; }
  uint32_t* rows_of(int local_worker) const;
  const uint32_t* gather_rows();
  void reduce(int local_owner, const uint32_t* rows, StepControl* control);
  const std::byte* gather_messages();

  OptimizerContext context_;
  Buckets& buckets_;
  SplitLayout layout_;
  std::vector<DgcCompressArgs> rules_;  // of this step, by local worker
  DgcTable table_;                      // one segment: a shard
  Buffer segment_;
  Buffer guesses_;   // a DgcGuess per local owner
  Buffer mine_;      // local workers' rows, [local][owners][row]
  Buffer rows_;      // the local owners' rows of every worker, [workers][local][row]; empty with one rank
  Buffer shards_;    // [local][shard]
  Buffer zeros_;     // [shard]
  Buffer messages_;  // the local owners'
  Buffer all_;       // all owners'; empty with one rank
  std::vector<const float*> row_pointers_;
};

}  // namespace dgc
