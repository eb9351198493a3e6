#include "optim/dgc_overlap.h"

#include <utility>

#include "tensor/errors.h"

namespace dgc {

DgcOverlap::DgcOverlap(const OptimizerContext& context, bool with_u) : context_(context), lane_(context.backend) {
  const auto& device = context.backend.device();
  for (int local = 0; local < context.local_workers; ++local) {
    next_.push_back({Arena(device, context.layout), std::nullopt});
    if (with_u) next_.back().u.emplace(device, context.layout);
  }
}

void DgcOverlap::begin(std::vector<DgcBucket>& buckets, std::vector<DgcCompressArgs> rules) {
  buckets_ = &buckets;
  rules_ = std::move(rules);
  for (size_t local = 0; local < next_.size(); ++local) {
    DgcCompressArgs& rule = rules_[local];
    rule.v_from = std::exchange(rule.v, next_[local].v.data());
    if (next_[local].u) rule.u_from = std::exchange(rule.u, next_[local].u->data());
  }
  handed_.assign(next_.size(), 0);
}

void DgcOverlap::ready(int local_worker, int first_param) {
  size_t& next = handed_[static_cast<size_t>(local_worker)];
  for (; next < buckets_->size() && (*buckets_)[next].first_param() >= first_param; ++next) {
    lane_.post([this, local_worker, bucket = static_cast<int>(next)] {
      compress(local_worker, (*buckets_)[static_cast<size_t>(bucket)]);
    });
  }
}

// Messages go out once the last local worker's is there: on every rank in the same order.
void DgcOverlap::compress(int local_worker, DgcBucket& bucket) const {
  const DgcCompressArgs& rule = rules_[static_cast<size_t>(local_worker)];
  bucket.compress(local_worker, rule);
  if (local_worker + 1 == context_.local_workers) bucket.exchange(rule.control);
}

void DgcOverlap::settle() {
  lane_.drain();
  for (const size_t handed : handed_) DGC_CHECK(handed == buckets_->size(), "gradients that were never ready()");
  ++steps_;
  is_settled_ = true;
}

ExchangeTime DgcOverlap::time() const {
  const double beside = lane_.busy_seconds(), exposed = std::chrono::duration<double>(exposed_).count();
  return {steps_, beside + exposed, lane_.hidden_seconds()};
}

void DgcOverlap::take_over(int local_worker, const Held& held, const StepControl* control, int64_t compressed_extent) {
  DGC_CHECK(is_settled_, "a step that did not begin() and settle()");
  is_settled_ = local_worker + 1 < context_.local_workers;
  Next& next = next_[static_cast<size_t>(local_worker)];
  const Shape all{context_.layout.extent()};
  const auto take = [&](Arena& arena, Arena& with) {
    context_.backend.copy_if_skipped(control, {arena.data(), all}, {with.data(), all});
    std::swap(arena, with);
  };
  const auto rest = static_cast<size_t>(context_.layout.extent() - compressed_extent) * sizeof(float);
  context_.backend.device()->copy(next.v.data() + compressed_extent, held.v->data() + compressed_extent, rest);
  take(*held.v, next.v);
  if (next.u) take(*held.u, *next.u);
}

}  // namespace dgc
