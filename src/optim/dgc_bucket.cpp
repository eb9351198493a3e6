#include "optim/dgc_bucket.h"

#include <utility>

namespace dgc {

void DgcBucket::prepare(DgcBucketLayout layout, size_t first_guess) {
  layout_ = std::move(layout);
  tables_ = DgcTables(context_.backend.device(), layout_.layout);
  exchange_.prepare(layout_.layout);
  first_guess_ = first_guess;
}

void DgcBucket::compress(int local_worker, DgcCompressArgs rule) const {
  rule.table = tables_.table();
  rule.guesses += first_guess_;
  const int worker = context_.communicator.rank() * context_.local_workers + local_worker;
  rule.header = layout().header(static_cast<uint32_t>(worker));
  rule.message = exchange_.message(local_worker);
  context_.backend.dgc_compress(rule);
  if (!layout().is_coded()) return;
  DgcEncodeArgs encode;
  encode.table = rule.table;
  encode.codes = tables_.codes();
  encode.control = rule.control;
  encode.v = rule.v;
  encode.header = rule.header;
  encode.message = rule.message;
  encode.coded = exchange_.coded(local_worker);
  context_.backend.dgc_encode(encode);
}

void DgcBucket::apply(Backend& backend, DgcApplyArgs args) const {
  args.table = tables_.table();
  args.header = layout().header(0);
  args.messages = messages_;
  backend.dgc_apply(args);
}

void DgcBuckets::prepare(std::vector<DgcBucketLayout> layouts, Backend& backend) {
  // First: both at once might not fit.
  if (buckets_.size() != layouts.size() || backend_ != &backend) buckets_.clear();
  backend_ = &backend;
  buckets_.reserve(layouts.size());
  const OptimizerContext context{backend, context_.communicator, context_.layout, context_.local_workers};
  size_t guesses = 0;
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (i == buckets_.size()) buckets_.emplace_back(context);
    const size_t segments = layouts[i].layout.segments.size();
    buckets_[i].prepare(std::move(layouts[i]), guesses);
    guesses += segments;
  }
}

int64_t DgcBuckets::sent_bytes() const {
  int64_t bytes = 0;
  for (const DgcBucket& bucket : buckets_) bytes += static_cast<int64_t>(bucket.layout().wire.message_bytes());
  return bytes;
}

void DgcBuckets::compress(int local_worker, const DgcCompressArgs& rule) const {
  for (const DgcBucket& bucket : buckets_) bucket.compress(local_worker, rule);
}

void DgcBuckets::exchange(const StepControl* control) {
  for (DgcBucket& bucket : buckets_) bucket.exchange(control);
}

void DgcBuckets::apply(Backend& backend, DgcApplyArgs args) const {
  const DgcDense dense = std::exchange(args.dense, {});
  for (const DgcBucket& bucket : buckets_) {
    if (&bucket == &buckets_.back()) args.dense = dense;
    bucket.apply(backend, args);
  }
}

}  // namespace dgc
