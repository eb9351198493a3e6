#include "optim/dgc/dense_sum.h"

namespace dgc {

Fp16GatherSum::Fp16GatherSum(const OptimizerContext& context, int64_t n)
    : context_(context),
      n_(n),
      mine_(context.backend.device(), static_cast<size_t>(context.local_workers * n) * sizeof(uint16_t),
            MemoryUse::messages),
      sum_(context.backend.device(), static_cast<size_t>(n) * sizeof(float), MemoryUse::messages) {
  const auto ranks = static_cast<size_t>(context.communicator.size());
  if (ranks > 1) all_ = Buffer(context.backend.device(), mine_.bytes() * ranks, MemoryUse::messages);
}

uint16_t* Fp16GatherSum::packed(int local_worker) const {
  return static_cast<uint16_t*>(mine_.data()) + local_worker * n_;
}

const float* Fp16GatherSum::run() {
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

DenseSum::DenseSum(const OptimizerContext& context, int64_t numel, SmallTensors how) : backend_(context.backend) {
  if (numel == 0) return;
  if (how == SmallTensors::dense_fp16) {
    half_.emplace(context, numel);
    return;
  }
  sum_.emplace(context.backend, context.communicator, context.local_workers, numel, MemoryUse::messages);
  for (int local = 0; local < context.local_workers; ++local) {
    packed_.emplace_back(context.backend.device(), static_cast<size_t>(numel) * sizeof(float), MemoryUse::messages);
    rows_.push_back(packed_.back().f32());
  }
}

void DenseSum::pack(int local_worker, const DgcDense& dense, const Source& source) {
  if (sum_) {
    backend_.dgc_pack({dense, source.gradient, packed_[static_cast<size_t>(local_worker)].f32(), source.scale});
  }
  if (!half_) return;
  DgcPackHalfArgs half;
  half.dense = dense;
  half.control = source.control;
  half.arena = source.gradient;
  half.residual = source.residual;
  half.packed = half_->packed(local_worker);
  half.scale = source.scale;
  backend_.dgc_pack_half(half);
}

const float* DenseSum::run() {
  if (sum_) return sum_->run(rows_);
  return half_ ? half_->run() : nullptr;
}

}  // namespace dgc
