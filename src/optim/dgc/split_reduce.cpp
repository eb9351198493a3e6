#include "optim/dgc/split_reduce.h"

namespace dgc {
namespace {

size_t word_bytes(int64_t words) { return static_cast<size_t>(words) * 4; }

DgcSegment shard_segment(const WireTensor& tensor) {
  return {0, tensor.numel, tensor.k, tensor.high_at, tensor.low_at, tensor.values_at, 0};
}

}  // namespace

SplitReduce::SplitReduce(const OptimizerContext& context, Buckets& buckets, const DgcLayout& layout)
    : context_(context), buckets_(buckets), layout_(layout.split.value()) {
  buckets.prepare({{layout, 0}}, context.backend);
  const auto& device = context.backend.device();
  const DgcDeal& deal = layout_.deal;
  const int64_t local = context.local_workers;
  const DgcSegment segment = shard_segment(layout_.kept.tensors()[0]);
  table_ = DgcTableMemory(device, {&segment, 1}, segment.numel);
  const std::vector<DgcGuess> guesses(static_cast<size_t>(local));
  guesses_ = Buffer(device, guesses.size() * sizeof(DgcGuess));
  device->copy_in(guesses_.data(), guesses.data(), guesses_.bytes());

  // Gaps in rows and messages travel too, those in messages are part of the checksum, and no step writes them.
  const auto zeroed = [&](size_t bytes) {
    Buffer buffer(device, bytes, MemoryUse::messages);
    device->zero(buffer.data(), buffer.bytes());
    return buffer;
  };
  mine_ = zeroed(word_bytes(local * deal.owners * deal.row()));
  shards_ = Buffer(device, word_bytes(local * deal.shard()), MemoryUse::messages);
  zeros_ = zeroed(word_bytes(deal.shard()));
  messages_ = zeroed(static_cast<size_t>(local * layout_.message_bytes()));
  for (int i = 0; i < context.local_workers; ++i) row_pointers_.push_back(reinterpret_cast<const float*>(rows_of(i)));
  if (context.communicator.size() == 1) return;
  rows_ = zeroed(mine_.bytes());
  all_ = Buffer(device, static_cast<size_t>(deal.owners * layout_.message_bytes()), MemoryUse::messages);
}

uint32_t* SplitReduce::rows_of(int local_worker) const {
  return static_cast<uint32_t*>(mine_.data()) + int64_t{local_worker} * layout_.deal.owners * layout_.deal.row();
}

void SplitReduce::compress(const MakeRules& make_rules) {
  rules_ = make_rules();
  std::vector<DgcCompressArgs> unmasked = rules_;
  for (DgcCompressArgs& rule : unmasked) rule.factor_masking = false;
  buckets_.compress(unmasked);
}

void SplitReduce::run(const StepArgs&, DgcApplyArgs& apply) {
  for (int i = 0; i < local_workers(); ++i) {
    const std::byte* const message = buckets_.all().front().message(i);
    float* const v = rules_[static_cast<size_t>(i)].v;
    context_.backend.dgc_deal({apply.table, layout_.deal, apply.control, message, v, rows_of(i)});
  }
  const uint32_t* const rows = gather_rows();
  for (int i = 0; i < local_workers(); ++i) reduce(i, rows, apply.control);

  DgcUndealArgs undeal;
  undeal.deal = layout_.deal;
  undeal.table = table_.table();
  undeal.control = apply.control;
  undeal.messages = gather_messages();
  undeal.workers = layout_.deal.owners;
  undeal.header = wire_header(layout_.kept, kCanonicalWire, 0);
  undeal.sum = apply.sum;
  context_.backend.dgc_undeal(undeal);
  for (int i = 0; i < local_workers(); ++i) {
    const DgcCompressArgs& rule = rules_[static_cast<size_t>(i)];
    float* const u = rule.momentum_correction && rule.factor_masking ? rule.u : nullptr;
    context_.backend.dgc_settle({layout_.deal, apply.control, rows_of(i), apply.sum, u, rule.v});
  }
}

// The sum is all zero again: dgc_step clears the segments, and outside of them dgc_undeal has written only zeros.
void SplitReduce::apply(const DgcApplyArgs& args) { context_.backend.dgc_step(args); }

// A row is a whole number of cache lines, so a rank's shard of all rows is its owners' rows, one after another.
const uint32_t* SplitReduce::gather_rows() {
  if (context_.communicator.size() == 1) return rows_of(0);
  context_.communicator.gather_shards(*context_.backend.device(), row_pointers_, rows_.f32(),
                                      static_cast<size_t>(layout_.deal.owners * layout_.deal.row()));
  return static_cast<const uint32_t*>(rows_.data());
}

// Choosing the largest sums of a shard is what dgc_compress does with a gradient of zero.
void SplitReduce::reduce(int local_owner, const uint32_t* rows, StepControl* control) {
  const DgcDeal& deal = layout_.deal;
  float* const shard = shards_.f32() + local_owner * deal.shard();
  DgcSumDealtArgs add;
  add.deal = deal;
  add.control = control;
  add.rows = rows + local_owner * deal.row();
  add.stride = local_workers() * deal.row();
  add.workers = deal.owners;
  add.shard = shard;
  context_.backend.dgc_sum_dealt(add);

  DgcCompressArgs select;
  select.table = table_.table();
  select.guesses = static_cast<DgcGuess*>(guesses_.data()) + local_owner;
  select.g = zeros_.f32();
  select.v = shard;
  select.control = control;
  select.momentum_correction = false;
  const int owner = context_.communicator.rank() * local_workers() + local_owner;
  select.header = wire_header(layout_.kept, kCanonicalWire, static_cast<uint32_t>(owner));
  select.message = static_cast<std::byte*>(messages_.data()) + local_owner * layout_.message_bytes();
  context_.backend.dgc_compress(select);
}

const std::byte* SplitReduce::gather_messages() {
  if (context_.communicator.size() == 1) return static_cast<const std::byte*>(messages_.data());
  context_.communicator.all_gather(*context_.backend.device(), messages_.data(), all_.data(), messages_.bytes());
  return static_cast<const std::byte*>(all_.data());
}

}  // namespace dgc
