#include "data/batches.h"

#include <algorithm>
#include <utility>

#include "tensor/errors.h"

namespace dgc {

Batches::Batches(std::unique_ptr<BatchSource> source, const PrefetchOptions& options)
    : source_(std::move(source)), count_(source_->count()) {
  DGC_CHECK(options.threads >= 1 && options.ahead >= 1, "prefetching needs a thread and a batch");
  slots_.resize(static_cast<size_t>(std::max(options.ahead, options.threads)) + 1);  // the caller holds one more
  for (int i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this, i](const std::stop_token& stop) { run(i, stop); });
  }
}

Batches::~Batches() {
  // All threads stop at the same time, before the first of them is joined by its destructor.
  for (std::jthread& thread : threads_) thread.request_stop();
}

const Batch* Batches::next() {
  if (std::exchange(handed_out_, false)) release();
  const Batch* const batch = wait();
  handed_out_ = batch != nullptr;
  return batch;
}

std::exception_ptr Batches::error_within(int64_t count) {
  const std::lock_guard lock(mutex_);
  const int64_t first = current_ + (handed_out_ ? 1 : 0);
  for (int64_t number = first; number < std::min(first + count, taken_); ++number) {
    const Slot& s = slot(number);
    if (s.ready && s.error) return s.error;
  }
  return nullptr;
}

const Batch* Batches::wait() {
  std::unique_lock lock(mutex_);
  if (current_ == count_) return nullptr;
  Slot& s = slot(current_);
  ready_.wait(lock, [&] { return s.ready; });
  if (s.error) std::rethrow_exception(s.error);
  return &s.batch;
}

void Batches::release() {
  const std::lock_guard lock(mutex_);
  slot(current_++).ready = false;
  room_.notify_one();
}

void Batches::run(int thread, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto room = [this] { return taken_ < std::min(current_ + static_cast<int64_t>(slots_.size()), count_); };
  while (room_.wait(lock, stop, room) && !stop.stop_requested()) {
    const int64_t number = taken_++;
    Slot& s = slot(number);
    lock.unlock();
    try {
      source_->fill(number, thread, s.batch, stop);
    } catch (...) {
      s.error = std::current_exception();
    }
    lock.lock();
    s.ready = true;
    ready_.notify_one();
  }
}

}  // namespace dgc
