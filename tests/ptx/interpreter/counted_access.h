#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/ptx/interpreter/machine.h"
#include "tests/ptx/interpreter/memory.h"

namespace dgc::ptx {

// Adds up what the lanes of a warp do in one access of memory. Without counts it does nothing.
class CountedAccess {
 public:
  enum class Kind { load, store };

  CountedAccess(const Warp& warp, const Instruction& instruction, Kind kind);
  ~CountedAccess() {
    if (counts_ != nullptr && lanes_ > 0) add();
  }
  CountedAccess(const CountedAccess&) = delete;
  CountedAccess& operator=(const CountedAccess&) = delete;

  void lane(const Location& at, size_t bytes) {
    if (counts_ != nullptr) note(at, bytes);
  }

 private:
  void note(const Location& at, size_t bytes);
  void add();

  Counts* counts_;
  Kind kind_;
  bool is_local_ = false;
  unsigned lanes_ = 0;  // that go to global or local memory
  size_t bytes_ = 0;    // of each lane
  std::array<uint64_t, kWarpSize> sectors_;
};

}  // namespace dgc::ptx
