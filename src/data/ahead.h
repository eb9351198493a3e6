#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "data/batch.h"
#include "tensor/errors.h"

namespace dgc {

// Makes items 0, 1, ... in background threads and hands them out in order. The slots form a ring: item n lives in slot
// n % slots, and its memory is used again once the caller has moved on. A thread takes the lowest item nobody has taken
// and makes all of it, so the content does not depend on the threads.
template <typename Item>
class Ahead {
 public:
  // Fills an item, which has the memory of an earlier one; may give up early when a stop is requested.
  using Make = std::function<void(int64_t number, Item&, const std::stop_token&)>;

  Ahead(int64_t count, Make make, const PrefetchOptions& options) : count_(count), make_(std::move(make)) {
    DGC_CHECK(options.threads >= 1 && options.ahead >= 1, "prefetching needs a thread and a batch");
    slots_.resize(static_cast<size_t>(std::max(options.ahead, options.threads)) + 1);  // one is in the caller's hands
    for (int i = 0; i < options.threads; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
    }
  }

  ~Ahead() {
    for (std::jthread& thread : threads_) thread.request_stop();  // all at once; each is joined as it is destroyed
  }

  // Null past the last item; valid until the next call. Throws what making this item threw, at every later call too.
  const Item* next() {
    std::unique_lock lock(mutex_);
    if (handed_out_) {
      slot(current_++).ready = false;
      handed_out_ = false;
      room_.notify_one();
    }
    if (current_ == count_) return nullptr;
    Slot& s = slot(current_);
    ready_.wait(lock, [&] { return s.ready; });
    if (s.error) std::rethrow_exception(s.error);
    handed_out_ = true;
    return &s.item;
  }

 private:
  struct Slot {
    Item item;
    bool ready = false;
    std::exception_ptr error;
  };

  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const auto room = [this] { return taken_ < std::min(current_ + static_cast<int64_t>(slots_.size()), count_); };
    while (room_.wait(lock, stop, room) && !stop.stop_requested()) {
      const int64_t number = taken_++;
      Slot& s = slot(number);
      lock.unlock();
      try {
        make_(number, s.item, stop);
      } catch (...) {
        s.error = std::current_exception();
      }
      lock.lock();
      s.ready = true;
      ready_.notify_one();
    }
  }

  int64_t count_;
  Make make_;
  std::vector<Slot> slots_;

  std::mutex mutex_;  // guards what follows, and every slot's ready
  std::condition_variable_any room_, ready_;
  int64_t taken_ = 0;    // items that threads have begun
  int64_t current_ = 0;  // item that the caller has, or gets next
  bool handed_out_ = false;
  std::vector<std::jthread> threads_;  // last: they stop before anything they use goes away
};

}  // namespace dgc
