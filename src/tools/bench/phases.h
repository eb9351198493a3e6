#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace dgc {

// Measures, on the device's own clock, how long the phases of training steps take while a Phases lives. Steps are not
// recorded meanwhile.
class Phases final : public RangeObserver {
 public:
  explicit Phases(Backend&);
  ~Phases() override { backend_.observer = nullptr; }
  Phases(const Phases&) = delete;
  Phases& operator=(const Phases&) = delete;

  void begin(const char* name) override;
  void end() override;

  struct Phase {
    std::string name;  // "worker" (forward and backward), "judge", "compress", "exchange", "apply"
    double milliseconds = 0;
  };
  std::vector<Phase> take();  // the sum of each phase since the last call; waits for the device

 private:
  static constexpr std::array kNames = {"worker", "judge", "compress", "exchange", "apply"};
  struct Measured {
    size_t phase;
    std::unique_ptr<Stopwatch> stopwatch;
  };

  Backend& backend_;
  std::vector<Measured> measured_;
  std::vector<Stopwatch*> open_;  // null: a range that is no phase
};

}  // namespace dgc
