#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/backend.h"

namespace dgc {

// A lane that is a thread with a backend of its own. The thread does tasks while the owner goes on.
class ThreadLane final : public Lane {
 public:
  // The thread calls `make`, and destroys the backend that `make` returns. The constructor throws what `make` throws.
  explicit ThreadLane(const std::function<std::unique_ptr<Backend>()>& make);
  ~ThreadLane() override;
  ThreadLane(const ThreadLane&) = delete;
  ThreadLane& operator=(const ThreadLane&) = delete;

  Backend& backend() const override { return *backend_; }
  void post(std::function<void()> task) override;
  void drain() override;

 private:
  void work(const std::function<std::unique_ptr<Backend>()>& make);
  void do_tasks();
  bool is_done() const { return next_ == tasks_.size() && !running_; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Backend> backend_;          // made and destroyed by the thread
  std::vector<std::function<void()>> tasks_;  // tasks since the last drain(); those from next_ on are not done yet
  size_t next_ = 0;
  bool started_ = false, running_ = false, ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace dgc
