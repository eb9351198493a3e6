#pragma once

#include "optim/dgc/exchange.h"

namespace dgc {

// The strategy in which an all-gather brings every worker's message to every rank, and every rank adds the messages up
// in worker order.
class Gather final : public Exchange {
 public:
  Gather(const OptimizerContext&, Buckets&, const DgcLayout&);
  Gather(const OptimizerContext&, Buckets& prepared);

  void compress(const MakeRules&) override;
  void run(const StepArgs&, DgcApplyArgs& apply) override;
  void apply(const DgcApplyArgs&) override;
  int64_t sent_bytes() const override { return buckets_.sent_bytes(); }

 private:
  OptimizerContext context_;
  Buckets& buckets_;
};

}  // namespace dgc
