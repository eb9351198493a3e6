#include "optim/dgc/gather.h"

namespace dgc {

Gather::Gather(const OptimizerContext& context, Buckets& prepared) : context_(context), buckets_(prepared) {}

Gather::Gather(const OptimizerContext& context, Buckets& buckets, const DgcLayout& layout) : Gather(context, buckets) {
  buckets.prepare({{layout, 0}}, context.backend);
}

void Gather::compress(const MakeRules& rules) { buckets_.compress(rules()); }

void Gather::run(const StepArgs&, DgcApplyArgs& apply) { buckets_.exchange(apply.control); }

void Gather::apply(const DgcApplyArgs& args) { buckets_.apply(context_.backend, args); }

}  // namespace dgc
