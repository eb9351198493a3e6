#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/backend.h"

namespace dgc {

// A thread with a backend of its own, which does what it is handed in that order, while its owner goes on.
class Lane {
 public:
  // Throws InternalError where the backend has none to run beside it (Backend::make_beside).
  explicit Lane(const Backend& owners);
  // Waits for the task that is under way and leaves out the others.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Backend& backend() const { return *backend_; }  // for tasks; its device is the owner's

  void post(std::function<void()> task);
  // Returns when all tasks are done. Throws what the first one threw that did not succeed; the rest was left out.
  void drain();

  // Between drain() and post().
  double busy_seconds() const { return seconds(busy_); }      // that tasks took ...
  double hidden_seconds() const { return seconds(hidden_); }  // ... of it while nobody waited in drain()

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }
  void work(const Backend& owners);
  void do_tasks();
  bool is_done() const { return next_ == tasks_.size() && !running_; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Backend> backend_;          // made and destroyed by the thread
  std::vector<std::function<void()>> tasks_;  // since the last drain(); [next_, ...) are to be done
  size_t next_ = 0;
  bool started_ = false, running_ = false, ends_ = false;
  std::exception_ptr failure_;
  Clock::time_point task_start_;
  Clock::duration busy_{}, hidden_{}, told_{};  // told_: what was busy_ at the end of the last drain()
  std::thread thread_;
};

}  // namespace dgc
