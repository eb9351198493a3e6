#include "optim/dgc/dense_sum.h"

namespace dgc {

Fp16Sum::Fp16Sum(const OptimizerContext& context, int64_t n)
    : context_(context),
      floats_((n + kHalvesPerFloat - 1) / kHalvesPerFloat),
      mine_(context.backend.device(), float_bytes(context.local_workers * floats_), MemoryUse::messages) {
  const auto& device = context.backend.device();
  const int ranks = context.communicator.size();
  // An odd number of halves leaves one that is sent and that nobody writes.
  device->zero(mine_.data(), mine_.bytes());
  for (int i = 0; i < context.local_workers; ++i) {
    local_workers_.push_back(reinterpret_cast<const float*>(packed(i)));
  }
  if (ranks > 2) shard_ = static_cast<int64_t>(shard_size(static_cast<size_t>(floats_), ranks));
  const auto buffer = [&](int64_t floats) { return Buffer(device, float_bytes(floats), MemoryUse::messages); };
  sum_ = buffer(kHalvesPerFloat * (shard_ > 0 ? ranks * shard_ : floats_));
  if (ranks == 1) return;
  const int64_t workers = int64_t{ranks} * context.local_workers;
  rows_ = buffer(workers * (shard_ > 0 ? shard_ : floats_));
  if (shard_ > 0) shard_sum_ = buffer(kHalvesPerFloat * shard_);
}

uint16_t* Fp16Sum::packed(int local_worker) const {
  return static_cast<uint16_t*>(mine_.data()) + local_worker * kHalvesPerFloat * floats_;
}

const float* Fp16Sum::run() {
  Communicator& communicator = context_.communicator;
  Device& device = *context_.backend.device();
  if (shard_ > 0) {
    communicator.gather_shards(device, local_workers_, rows_.f32(), static_cast<size_t>(floats_));
    add(rows_, shard_, shard_sum_);
    communicator.all_gather(device, shard_sum_.data(), sum_.data(), shard_sum_.bytes());
  } else if (communicator.size() > 1) {
    communicator.all_gather(device, mine_.data(), rows_.data(), mine_.bytes());
    add(rows_, floats_, sum_);
  } else {
    add(mine_, floats_, sum_);
  }
  return sum_.f32();
}

// rows: of all workers, one after another, `floats` floats that hold halves. sum: the halves' sums, in fp32.
void Fp16Sum::add(const Buffer& rows, int64_t floats, const Buffer& sum) {
  DgcSumHalfArgs args;
  args.packed = static_cast<const uint16_t*>(rows.data());
  args.workers = context_.communicator.size() * context_.local_workers;
  args.numel = kHalvesPerFloat * floats;
  args.sum = sum.f32();
  context_.backend.dgc_sum_half(args);
}

DenseSum::DenseSum(const OptimizerContext& context, int64_t numel, SmallTensors how) : backend_(context.backend) {
  if (numel == 0) return;
  if (how == SmallTensors::dense_fp16) {
    half_.emplace(context, numel);
    return;
  }
  sum_.emplace(context.backend, context.communicator, context.local_workers, numel, MemoryUse::messages);
  for (int local = 0; local < context.local_workers; ++local) {
    packed_.emplace_back(context.backend.device(), float_bytes(numel), MemoryUse::messages);
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
