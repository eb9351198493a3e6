#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace dgc {

// Pauses between two looks at something that will happen. They grow with the time waited so far, so that little of it
// is lost, and who waits leaves the core to others.
class BackOff {
 public:
  void pause() const {
    using std::chrono::microseconds;
    constexpr microseconds kYielding(50), kLongest(100);
    const auto waited = std::chrono::steady_clock::now() - start_;
    if (waited < kYielding) return std::this_thread::yield();
    constexpr int kShare = 16;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / kShare, kLongest));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace dgc
