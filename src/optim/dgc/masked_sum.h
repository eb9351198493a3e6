#pragma once

#include "optim/dgc/exchange.h"
#include "optim/ordered_reduce.h"

namespace dgc {

// What is selected travels as a dense sum, with zeros in the place of what is not (docs/exchange.md): the same bits as
// from a gather.
class MaskedSum final : public Exchange {
 public:
  MaskedSum(const OptimizerContext&, Buckets&, const DgcLayout&);

  void compress(const MakeRules&) override;
  // Each worker's selection takes the place of its gradient.
  void run(const StepArgs&, DgcApplyArgs& apply) override;
  void apply(const DgcApplyArgs&) override;
  int64_t sent_bytes() const override { return sent_bytes_; }

 private:
  OptimizerContext context_;
  Buckets& buckets_;
  int64_t sent_bytes_;
  OrderedReduce reduce_;
  std::vector<const float*> selections_;
};

}  // namespace dgc
