#include "optim/dgc_overlap.h"

#include <utility>

#include "tensor/errors.h"

namespace dgc {

DgcOverlap::DgcOverlap(const OptimizerContext& context, std::vector<Held> held)
    : context_(context),
      held_(std::move(held)),
      totals_(context.backend.device(), sizeof(OverlapTotals)),
      lane_(context.backend.make_lane()) {
  const auto& device = context.backend.device();
  for (const Held& worker : held_) {
    before_.push_back({Arena(device, context.layout), std::nullopt});
    if (worker.u != nullptr) before_.back().u.emplace(device, context.layout);
  }
}

// In the lane, behind what the owner has queued that may still look at the buckets as they were.
void DgcOverlap::lay_out(DgcBuckets& buckets, std::vector<DgcBucketLayout> layouts) {
  lane_->post([&] { buckets.prepare(std::move(layouts), lane_->backend()); });
  lane_->drain();
  buckets_ = &buckets.all();
  spans_ = Buffer(context_.backend.device(), (tasks() + 2) * sizeof(OverlapSpan));
}

void DgcOverlap::turn() {
  for (size_t local = 0; local < held_.size(); ++local) {
    std::swap(*held_[local].v, before_[local].v);
    if (held_[local].u != nullptr) std::swap(*held_[local].u, *before_[local].u);
  }
  side_ = 1 - side_;
}

void DgcOverlap::begin(std::vector<DgcCompressArgs> rules) {
  rules_ = std::move(rules);
  for (size_t local = 0; local < held_.size(); ++local) {
    rules_[local].v_from = before_[local].v.data();
    if (before_[local].u) rules_[local].u_from = before_[local].u->data();
  }
  handed_.assign(held_.size(), 0);
  is_settled_ = false;
}

void DgcOverlap::ready(int local_worker, int first_param) {
  size_t& next = handed_[static_cast<size_t>(local_worker)];
  for (; next < buckets_->size() && (*buckets_)[next].first_param() >= first_param; ++next) {
    lane_->post([this, local_worker, bucket = next] { compress(local_worker, bucket); });
  }
}

// Messages go out once the last local worker's is there: on every rank in the same order.
void DgcOverlap::compress(int local_worker, size_t index) const {
  const auto worker = static_cast<size_t>(local_worker);
  Backend& backend = lane_->backend();
  DgcBucket& bucket = (*buckets_)[index];
  OverlapSpan* const time = span(worker * buckets_->size() + index);
  backend.read_clock(&time->from);
  {
    const Range range(backend, "compress");
    bucket.compress(local_worker, rules_[worker]);
  }
  if (worker + 1 == held_.size()) {
    const Range range(backend, "exchange");
    bucket.exchange(rules_[worker].control);
  }
  backend.read_clock(&time->to);
}

void DgcOverlap::settle() {
  context_.backend.read_clock(&span(tasks() + 1)->from);
  lane_->drain();
  for (const size_t handed : handed_) DGC_CHECK(handed == buckets_->size(), "gradients that were never ready()");
  is_settled_ = true;
}

void DgcOverlap::take_back_if_skipped(int local_worker, const StepControl* control, int64_t compressed_extent) {
  DGC_CHECK(is_settled_, "a step that did not begin() and settle()");
  const Held& held = held_[static_cast<size_t>(local_worker)];
  const Before& before = before_[static_cast<size_t>(local_worker)];
  const auto rest = static_cast<size_t>(context_.layout.extent() - compressed_extent) * sizeof(float);
  context_.backend.device()->copy(held.v->data() + compressed_extent, before.v.data() + compressed_extent, rest);
  const auto take_back = [&](const Arena& from, const Arena& to) {
    const Shape all{context_.layout.extent()};
    context_.backend.copy_if_skipped(control, {from.data(), all}, {to.data(), all});
  };
  take_back(before.v, *held.v);
  if (before.u) take_back(*before.u, *held.u);
}

void DgcOverlap::begin_rest() { context_.backend.read_clock(&span(tasks())->from); }

void DgcOverlap::end_rest() {
  context_.backend.read_clock(&span(tasks())->to);
  context_.backend.add_overlap_time({.spans = span(0),
                                     .count = static_cast<int64_t>(tasks()) + 1,
                                     .waits_from = &span(tasks() + 1)->from,
                                     .totals = static_cast<OverlapTotals*>(totals_.data())});
}

ExchangeTime DgcOverlap::time() const {
  OverlapTotals totals;
  context_.backend.device()->copy_out(&totals, totals_.data(), sizeof(totals));
  return {.steps = static_cast<int64_t>(totals.steps),
          .seconds = 1e-9 * static_cast<double>(totals.nanoseconds),
          .hidden = 1e-9 * static_cast<double>(totals.hidden)};
}

}  // namespace dgc
