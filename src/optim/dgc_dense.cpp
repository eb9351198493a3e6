#include "optim/dgc_dense.h"

namespace dgc {

DgcDenseSum::DgcDenseSum(const OptimizerContext& context, int64_t numel, bool in_half) : backend_(context.backend) {
  if (numel == 0) return;
  if (in_half) {
    half_.emplace(context, numel);
    return;
  }
  sum_.emplace(context.backend, context.communicator, context.local_workers, numel);
  for (int local = 0; local < context.local_workers; ++local) {
    packed_.emplace_back(context.backend.device(), static_cast<size_t>(numel) * sizeof(float));
    rows_.push_back(packed_.back().f32());
  }
}

void DgcDenseSum::pack(int local_worker, const DgcDense& dense, const Source& source) {
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

const float* DgcDenseSum::run() {
  if (sum_) return sum_->run(rows_);
  return half_ ? half_->run() : nullptr;
}

}  // namespace dgc
