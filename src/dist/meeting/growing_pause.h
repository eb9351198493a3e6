#pragma once

#include <algorithm>
#include <thread>

#include "dist/meeting/socket.h"

namespace dgc {

// Pauses between attempts to meet, each twice as long as the one before it, up to 200 ms: a shared file system is slow
// to ask, and a thousand ranks may knock at one door.
class GrowingPause {
 public:
  explicit GrowingPause(std::chrono::milliseconds first) : pause_(first) {}

  void wait(Deadline deadline) {
    constexpr std::chrono::milliseconds kLongest(200);
    std::this_thread::sleep_for(std::min(pause_, std::chrono::milliseconds(milliseconds_until(deadline))));
    pause_ = std::min(2 * pause_, kLongest);
  }

 private:
  std::chrono::milliseconds pause_;
};

}  // namespace dgc
