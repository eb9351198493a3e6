#include "data/prefetcher.h"

#include <algorithm>

#include "tensor/errors.h"

namespace dgc {

Prefetcher::Prefetcher(const ImageDataset& dataset, std::unique_ptr<const BatchSource> source,
                       const PrefetchOptions& options)
    : dataset_(dataset), source_(std::move(source)) {
  DGC_CHECK(options.threads >= 1 && options.ahead >= 1, "prefetching needs a thread and a batch");
  slots_.resize(static_cast<size_t>(std::max(options.ahead, options.threads)) + 1);  // one is in the caller's hands
  for (Slot& s : slots_) {
    s.plan.samples.reserve(static_cast<size_t>(source_->batch_size()));
    s.batch.labels.reserve(static_cast<size_t>(source_->batch_size()));
    s.batch.images.reserve(static_cast<size_t>(source_->batch_size() * dataset.shape().numel()));
  }
  for (int i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  }
}

Prefetcher::~Prefetcher() {
  for (std::jthread& thread : threads_) thread.request_stop();  // all at once; each is joined as it is destroyed
}

const Batch* Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (handed_out_) {
    slot(current_++).ready = false;
    handed_out_ = false;
    room_.notify_one();
  }
  if (current_ == source_->count()) return nullptr;
  Slot& s = slot(current_);
  ready_.wait(lock, [&] { return s.ready; });
  if (s.error) std::rethrow_exception(s.error);
  handed_out_ = true;
  return &s.batch;
}

void Prefetcher::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto room = [this] {
    return taken_ < std::min(current_ + static_cast<int64_t>(slots_.size()), source_->count());
  };
  while (room_.wait(lock, stop, room) && !stop.stop_requested()) {
    const int64_t number = taken_++;
    Slot& s = slot(number);
    lock.unlock();
    try {
      fill(number, s, stop);
    } catch (...) {
      s.error = std::current_exception();
    }
    lock.lock();
    s.ready = true;
    ready_.notify_one();
  }
}

void Prefetcher::fill(int64_t number, Slot& s, const std::stop_token& stop) const {
  source_->plan(number, s.plan);
  const size_t count = s.plan.samples.size();
  const auto numel = static_cast<size_t>(dataset_.shape().numel());
  s.batch.step = s.plan.step;
  s.batch.worker = s.plan.worker;
  s.batch.labels.resize(count);
  s.batch.images.resize(count * numel);
  for (size_t i = 0; i < count && !stop.stop_requested(); ++i) {
    const int32_t sample = s.plan.samples[i];
    std::optional<Draw> draw;
    if (s.plan.augment_seed) draw.emplace(*s.plan.augment_seed, s.plan.epoch, sample);
    s.batch.labels[i] = dataset_.read(sample, draw ? &*draw : nullptr, s.batch.images.data() + i * numel);
  }
}

}  // namespace dgc
