#include "optim/fp16_all_reduce.h"

#include <algorithm>

namespace dgc {
namespace {

constexpr size_t kHalfBytes = sizeof(uint16_t);

size_t half_bytes(int64_t halves) { return static_cast<size_t>(halves) * kHalfBytes; }

int64_t all_workers(const OptimizerContext& c) { return int64_t{c.communicator.size()} * c.local_workers; }

// The length of a shard. All shards have the same length, in whole cache lines, so a rank's shard is its workers'
// shards, one after another.
int64_t shard_halves(const OptimizerContext& c) {
  const auto floats = static_cast<size_t>((c.layout.extent() + 1) / kHalvesPerFloat);
  return kHalvesPerFloat * static_cast<int64_t>(shard_size(floats, static_cast<int>(all_workers(c))));
}

}  // namespace

Fp16AllReduce::Fp16AllReduce(const OptimizerContext& context)
    : context_(context),
      shard_(shard_halves(context)),
      row_(shard_ * all_workers(context)),
      ranges_(context.backend.device(), static_cast<size_t>(1 + context.local_workers) * sizeof(DgcRange)),
      one_(context.backend.device(), sizeof(float)),
      packed_(context.backend.device(), half_bytes(context.local_workers * row_), MemoryUse::momentum),
      mine_sum_(context.backend.device(), float_bytes(context.local_workers * shard_), MemoryUse::momentum),
      mine_(context.backend.device(), half_bytes(context.local_workers * shard_), MemoryUse::momentum),
      sum_(context.backend.device(), float_bytes(context.layout.extent()), MemoryUse::momentum) {
  const auto& device = context.backend.device();
  std::vector<DgcRange> ranges = {{0, extent(), 0}};
  for (int local = 0; local < context.local_workers; ++local) {
    residuals_.emplace_back(device, context.layout, MemoryUse::residuals);
    packed_rows_.push_back(reinterpret_cast<const float*>(packed(local)));
    const int64_t worker = int64_t{context.communicator.rank()} * context.local_workers + local;
    own_first_.push_back(std::min(worker * shard_, extent()));
    own_numel_.push_back(std::min(shard_, extent() - own_first_.back()));
    ranges.push_back({0, own_numel_.back(), 0});
  }
  const float one = 1;
  device->copy_in(ranges_.data(), ranges.data(), ranges_.bytes());
  device->copy_in(one_.data(), &one, sizeof(one));
  if (context.communicator.size() == 1) return;
  rows_ = Buffer(device, half_bytes(all_workers(context) * context.local_workers * shard_), MemoryUse::momentum);
  all_ = Buffer(device, half_bytes(row_), MemoryUse::momentum);
}

// The range of the whole arena (0), or that of a local worker's shard (1 + the worker's number).
DgcDense Fp16AllReduce::range(int64_t which) const {
  const int64_t numel = which == 0 ? extent() : own_numel_[static_cast<size_t>(which - 1)];
  return {static_cast<const DgcRange*>(ranges_.data()) + which, 1, numel};
}

float* Fp16AllReduce::run(const Args& args) {
  for (int local = 0; local < context_.local_workers; ++local) {
    DgcPackHalfArgs pack;
    pack.dense = range(0);
    pack.control = args.control;
    pack.arena = args.gradients[static_cast<size_t>(local)];
    pack.residual = residual(local).data();
    pack.packed = packed(local);
    pack.scale = args.scale;
    context_.backend.dgc_pack_half(pack);
  }
  DgcSumHalfArgs add;
  add.packed = static_cast<const uint16_t*>(gather_shards());
  add.workers = static_cast<int32_t>(all_workers(context_));
  add.numel = context_.local_workers * shard_;
  add.sum = mine_sum_.f32();
  context_.backend.dgc_sum_half(add);
  pack_sums(args.control);

  const bool alone = context_.communicator.size() == 1;
  if (!alone) context_.communicator.all_gather(*context_.backend.device(), mine_.data(), all_.data(), mine_.bytes());
  DgcSumHalfArgs unpack;
  unpack.packed = static_cast<const uint16_t*>(alone ? mine_.data() : all_.data());
  unpack.workers = 1;
  unpack.numel = extent();
  unpack.sum = sum_.f32();
  context_.backend.dgc_sum_half(unpack);
  return sum_.f32();
}

// All workers' halves of the local shards, in worker order.
const void* Fp16AllReduce::gather_shards() {
  if (context_.communicator.size() == 1) return packed_.data();
  context_.communicator.gather_shards(*context_.backend.device(), packed_rows_, rows_.f32(),
                                      static_cast<size_t>(row_ / kHalvesPerFloat));
  return rows_.data();
}

void Fp16AllReduce::pack_sums(const StepControl* control) {
  for (int local = 0; local < context_.local_workers; ++local) {
    const auto i = static_cast<size_t>(local);
    DgcPackHalfArgs pack;
    pack.dense = range(1 + local);
    pack.control = control;
    pack.arena = mine_sum_.f32() + local * shard_;
    pack.residual = residual(local).data() + own_first_[i];
    pack.packed = static_cast<uint16_t*>(mine_.data()) + local * shard_;
    pack.scale = one_.f32();
    if (own_numel_[i] > 0) context_.backend.dgc_pack_half(pack);
  }
}

}  // namespace dgc
