#include "data/prefetcher.h"

namespace dgc {

Prefetcher::Prefetcher(const ImageDataset& dataset, std::unique_ptr<const BatchSource> source,
                       const PrefetchOptions& options)
    : dataset_(dataset),
      source_(std::move(source)),
      ahead_(
          source_->count(),
          [this](int64_t number, Item& item, const std::stop_token& stop) { fill(number, item, stop); }, options) {}

const Batch* Prefetcher::next() {
  const Item* item = ahead_.next();
  return item != nullptr ? &item->batch : nullptr;
}

void Prefetcher::fill(int64_t number, Item& item, const std::stop_token& stop) const {
  Batch& batch = item.batch;
  source_->plan(number, item.plan);
  const size_t count = item.plan.samples.size(), most = static_cast<size_t>(source_->batch_size());
  const auto numel = static_cast<size_t>(dataset_.shape().numel());
  batch.step = item.plan.step;
  batch.worker = item.plan.worker;
  batch.labels.reserve(most);
  batch.images.reserve(most * numel);
  batch.labels.resize(count);
  batch.images.resize(count * numel);
  for (size_t i = 0; i < count && !stop.stop_requested(); ++i) {
    const int32_t sample = item.plan.samples[i];
    std::optional<Draw> draw;
    if (item.plan.augment_seed) draw.emplace(*item.plan.augment_seed, item.plan.epoch, sample);
    batch.labels[i] = dataset_.read(sample, draw ? &*draw : nullptr, batch.images.data() + i * numel);
  }
}

}  // namespace dgc
