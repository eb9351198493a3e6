#include "optim/dgc/masked_sum.h"

namespace dgc {

MaskedSum::MaskedSum(const OptimizerContext& context, Buckets& buckets, const DgcLayout& layout)
    : context_(context),
      buckets_(buckets),
      sent_bytes_(layout.compressed_bytes()),
      reduce_(context.backend, context.communicator, context.local_workers, layout.compressed_extent(),
              MemoryUse::messages) {
  buckets.prepare({{layout, 0}}, context.backend);
}

void MaskedSum::compress(const MakeRules& rules) { buckets_.compress(rules()); }

void MaskedSum::run(const StepArgs& args, DgcApplyArgs& apply) {
  for (int local = 0; local < context_.local_workers; ++local) {
    DgcScatterArgs scatter;
    scatter.table = apply.table;
    scatter.control = apply.control;
    scatter.message = buckets_.all().front().message(local);
    scatter.dense = args.gradients[static_cast<size_t>(local)];
    context_.backend.dgc_scatter(scatter);
  }
  apply.sum = reduce_.run(args.gradients);
}

void MaskedSum::apply(const DgcApplyArgs& args) { context_.backend.dgc_step(args); }

}  // namespace dgc
