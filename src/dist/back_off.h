#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace dgc {

// Pauses of a polling loop. A pause grows with the time waited so far: short waits end promptly, and long ones leave
// the core to other threads.
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
