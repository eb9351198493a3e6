#include "optim/dgc/exchange.h"

#include <utility>

#include "optim/dgc/gather.h"
#include "optim/dgc/masked_sum.h"
#include "optim/dgc/overlap.h"
#include "optim/dgc/split_reduce.h"

namespace dgc {

Exchanges::Exchanges(const OptimizerContext& context, std::vector<Residuals> residuals)
    : context_(context), buckets_(context) {
  if (!residuals.empty()) overlap_ = std::make_unique<OverlapMemory>(context, std::move(residuals));
}

Exchanges::~Exchanges() = default;

void Exchanges::lay_out(const DgcLayout& layout) {
  current_.reset();  // frees the old strategy first, because the memory of both might not fit at once
  if (layout.travel == Travel::dense) {
    current_ = std::make_unique<MaskedSum>(context_, buckets_, layout);
  } else if (layout.travel == Travel::split_reduce) {
    current_ = std::make_unique<SplitReduce>(context_, buckets_, layout);
  } else if (layout.bucket_bytes) {
    current_ = std::make_unique<OverlappedGather>(context_, buckets_, layout, *overlap_);
  } else {
    current_ = std::make_unique<Gather>(context_, buckets_, layout);
  }
}

std::optional<ExchangeTime> Exchanges::time() const {
  return overlap_ ? std::optional(overlap_->time()) : std::nullopt;
}

}  // namespace dgc
