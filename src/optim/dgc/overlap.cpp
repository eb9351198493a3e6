#include "optim/dgc/overlap.h"

#include <utility>

#include "tensor/errors.h"

namespace dgc {
namespace {

// Prepares the buckets in the lane, behind all work that the lane's owner has queued: it may still read the old
// buckets.
Buckets& prepare_in(Lane& lane, Buckets& buckets, std::vector<DgcBucketLayout> layouts) {
  lane.post([&] { buckets.prepare(std::move(layouts), lane.backend()); });
  lane.drain();
  return buckets;
}

}  // namespace

OverlapMemory::OverlapMemory(const OptimizerContext& context, std::vector<Residuals> residuals)
    : residuals_(std::move(residuals)),
      totals_(context.backend.device(), sizeof(OverlapTotals)),
      lane_(context.backend.make_lane()) {
  const auto& device = context.backend.device();
  for (const Residuals& worker : residuals_) {
    before_.push_back({Arena(device, context.layout, MemoryUse::residuals), std::nullopt});
    if (worker.u != nullptr) before_.back().u.emplace(device, context.layout, MemoryUse::residuals);
  }
}

void OverlapMemory::turn() {
  for (size_t local = 0; local < residuals_.size(); ++local) {
    std::swap(*residuals_[local].v, before_[local].v);
    if (residuals_[local].u != nullptr) std::swap(*residuals_[local].u, *before_[local].u);
  }
  side_ = 1 - side_;
}

ExchangeTime OverlapMemory::time() const {
  OverlapTotals totals;
  totals_.device().copy_out(&totals, totals_.data(), sizeof(totals));
  return {.steps = static_cast<int64_t>(totals.steps),
          .seconds = 1e-9 * static_cast<double>(totals.nanoseconds),
          .hidden = 1e-9 * static_cast<double>(totals.hidden)};
}

OverlappedGather::OverlappedGather(const OptimizerContext& context, Buckets& buckets, const DgcLayout& layout,
                                   OverlapMemory& memory)
    : context_(context),
      memory_(memory),
      gather_(context, prepare_in(memory.lane(), buckets, cut_into_buckets(context.layout, layout))),
      buckets_(buckets.all()),
      compressed_extent_(layout.compressed_extent()),
      spans_(context.backend.device(), (tasks() + 2) * sizeof(OverlapSpan)) {}

uint64_t OverlappedGather::turn() {
  memory_.turn();
  return memory_.side();
}

void OverlappedGather::begin(const MakeRules& make_rules) {
  rules_ = make_rules();
  for (size_t local = 0; local < rules_.size(); ++local) {
    const OverlapMemory::Before& before = memory_.before()[local];
    rules_[local].v_from = before.v.data();
    if (before.u) rules_[local].u_from = before.u->data();
  }
  handed_.assign(rules_.size(), 0);
  is_settled_ = false;
}

void OverlappedGather::ready(int local_worker, int first_param) {
  size_t& next = handed_[static_cast<size_t>(local_worker)];
  for (; next < buckets_.size() && buckets_[next].first_param() >= first_param; ++next) {
    memory_.lane().post([this, local_worker, bucket = next] { compress_bucket(local_worker, bucket); });
  }
}

// A bucket is exchanged once the last local worker has compressed it, so that all ranks exchange buckets in the same
// order.
void OverlappedGather::compress_bucket(int local_worker, size_t index) const {
  const auto worker = static_cast<size_t>(local_worker);
  Backend& backend = memory_.lane().backend();
  Bucket& bucket = buckets_[index];
  OverlapSpan* const time = span(worker * buckets_.size() + index);
  backend.read_clock(&time->from);
  {
    const Range range(backend, "compress");
    bucket.compress(local_worker, rules_[worker]);
  }
  if (worker + 1 == rules_.size()) {
    const Range range(backend, "exchange");
    bucket.exchange(rules_[worker].control);
  }
  backend.read_clock(&time->to);
}

void OverlappedGather::settle() {
  const Range range(context_.backend, "exchange");
  context_.backend.read_clock(&span(tasks() + 1)->from);
  memory_.lane().drain();
  for (const size_t handed : handed_) DGC_CHECK(handed == buckets_.size(), "gradients that were never ready()");
  is_settled_ = true;
}

void OverlappedGather::compress(const MakeRules&) {
  DGC_CHECK(is_settled_, "a step that did not begin() and settle()");
  const Shape all{context_.layout.extent()};
  const auto rest = float_bytes(context_.layout.extent() - compressed_extent_);
  for (size_t local = 0; local < rules_.size(); ++local) {
    const Residuals& worker = memory_.residuals()[local];
    const OverlapMemory::Before& before = memory_.before()[local];
    context_.backend.device()->copy(worker.v->data() + compressed_extent_, before.v.data() + compressed_extent_, rest);
    const StepControl* const control = rules_[local].control;
    context_.backend.copy_if_skipped(control, {before.v.data(), all}, {worker.v->data(), all});
    if (before.u) context_.backend.copy_if_skipped(control, {before.u->data(), all}, {worker.u->data(), all});
  }
}

void OverlappedGather::run(const StepArgs&, DgcApplyArgs&) { context_.backend.read_clock(&span(tasks())->from); }

void OverlappedGather::apply(const DgcApplyArgs& args) {
  context_.backend.read_clock(&span(tasks())->to);
  context_.backend.add_overlap_time({.spans = span(0),
                                     .count = static_cast<int64_t>(tasks()) + 1,
                                     .waits_from = &span(tasks() + 1)->from,
                                     .totals = memory_.totals()});
  gather_.apply(args);
}

}  // namespace dgc
