#include "kernels/cpu/thread_lane.h"

namespace dgc {

ThreadLane::ThreadLane(const std::function<std::unique_ptr<Backend>()>& make) : thread_([this, &make] { work(make); }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return started_; });
  if (failure_ == nullptr) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(failure_);
}

ThreadLane::~ThreadLane() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void ThreadLane::work(const std::function<std::unique_ptr<Backend>()>& make) {
  {
    const std::lock_guard lock(mutex_);
    try {
      backend_ = make();
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

void ThreadLane::do_tasks() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || next_ < tasks_.size(); });
    if (ends_) return;
    const std::function<void()> task = std::move(tasks_[next_++]);
    running_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    running_ = false;
    if (failure != nullptr) {
      failure_ = failure;
      next_ = tasks_.size();
    }
    if (is_done()) changed_.notify_all();
  }
}

void ThreadLane::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (failure_ != nullptr) return;
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void ThreadLane::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_done(); });
  tasks_.clear();
  next_ = 0;
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace dgc
