#include "optim/half_sum.h"

namespace dgc {

HalfSum::HalfSum(const OptimizerContext& context, int64_t n)
    : context_(context),
      n_(n),
      mine_(context.backend.device(), static_cast<size_t>(context.local_workers * n) * sizeof(uint16_t)),
      sum_(context.backend.device(), static_cast<size_t>(n) * sizeof(float)) {
  const auto ranks = static_cast<size_t>(context.communicator.size());
  if (ranks > 1) all_ = Buffer(context.backend.device(), mine_.bytes() * ranks);
}

uint16_t* HalfSum::packed(int local_worker) const { return static_cast<uint16_t*>(mine_.data()) + local_worker * n_; }

const float* HalfSum::run() {
  const Buffer& all = context_.communicator.size() == 1 ? mine_ : all_;
  if (context_.communicator.size() > 1) {
    context_.communicator.all_gather(*context_.backend.device(), mine_.data(), all_.data(), mine_.bytes());
  }
  DgcSumHalfArgs args;
  args.packed = static_cast<const uint16_t*>(all.data());
  args.workers = context_.communicator.size() * context_.local_workers;
  args.numel = n_;
  args.sum = sum_.f32();
  context_.backend.dgc_sum_half(args);
  return sum_.f32();
}

}  // namespace dgc
