#include "optim/lane.h"

#include "tensor/errors.h"

namespace dgc {

Lane::Lane(const Backend& owners) : thread_([this, &owners] { work(owners); }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return started_; });
  if (failure_ == nullptr) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(failure_);
}

Lane::~Lane() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Lane::work(const Backend& owners) {
  {
    const std::lock_guard lock(mutex_);
    try {
      backend_ = owners.make_beside();
      DGC_CHECK(backend_ != nullptr, "nothing can run beside this backend");
    } catch (...) {
      failure_ = std::current_exception();
    }
    started_ = true;
    changed_.notify_all();
    if (failure_ != nullptr) return;
  }
  do_tasks();
  backend_.reset();
}

void Lane::do_tasks() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || next_ < tasks_.size(); });
    if (ends_) return;
    const std::function<void()> task = std::move(tasks_[next_++]);
    running_ = true;
    task_start_ = Clock::now();
    lock.unlock();
    std::exception_ptr failure;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ += Clock::now() - task_start_;
    running_ = false;
    if (failure != nullptr) {
      failure_ = failure;
      next_ = tasks_.size();
    }
    if (is_done()) changed_.notify_all();
  }
}

void Lane::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (failure_ != nullptr) return;
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void Lane::drain() {
  std::unique_lock lock(mutex_);
  hidden_ += busy_ - told_;
  if (running_) hidden_ += Clock::now() - task_start_;
  changed_.wait(lock, [&] { return is_done(); });
  told_ = busy_;
  tasks_.clear();
  next_ = 0;
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace dgc
