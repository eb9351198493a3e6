#pragma once

#include "optim/dgc/exchange.h"
#include "optim/ordered_reduce.h"

namespace dgc {

// The strategy in which the selection travels as a dense sum, with zeros for all elements that are not selected
// (docs/exchange.md). The weights get the same bits as from Gather.
class MaskedSum final : public Exchange {
 public:
  MaskedSum(const OptimizerContext&, Buckets&, const DgcLayout&);

  void compress(const MakeRules&) override;
  // Overwrites each local worker's gradient with the worker's selection.
  void run(const StepArgs&, DgcApplyArgs& apply) override;
  void apply(const DgcApplyArgs&) override;
  int64_t sent_bytes() const override { return sent_bytes_; }

 private:
  OptimizerContext context_;
  Buckets& buckets_;
  int64_t sent_bytes_;
  OrderedReduce reduce_;
};

}  // namespace dgc
