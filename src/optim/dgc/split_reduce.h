#pragma once

#include "kernels/dgc_table.h"
#include "optim/dgc/exchange.h"

namespace dgc {

// The strategy in which the bytes that reach a worker do not grow with the number of workers: every worker adds up one
// shard of all selections, in worker order, and sends the largest sums to all (docs/exchange.md). An entry that is
// dropped on the way stays in the v of the worker that selected it. Shards belong to workers and not to ranks, so that
// the bits do not depend on how workers are spread over ranks.
class SplitReduce final : public Exchange {
 public:
  // The layout's `split` must be set.
  SplitReduce(const OptimizerContext&, Buckets&, const DgcLayout&);

  // Leaves u unmasked: run() masks u where a selected entry has been sent.
  void compress(const MakeRules&) override;
  // Sets apply.control->fault if an owner's message cannot be used.
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
  std::vector<DgcCompressArgs> rules_;  // the rules of this step, by local worker
  DgcTableMemory table_;                // one segment: a shard
  Buffer guesses_;                      // a DgcGuess per local owner
  Buffer mine_;                         // the local workers' rows, [local][owners][row]
  Buffer rows_;      // the local owners' rows of every worker, [workers][local][row]; empty with one rank
  Buffer shards_;    // the local owners' sums, [local][shard]
  Buffer zeros_;     // [shard]
  Buffer messages_;  // the local owners' messages
  Buffer all_;       // all owners' messages; empty with one rank
  std::vector<const float*> row_pointers_;
};

}  // namespace dgc
