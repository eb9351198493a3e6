#pragma once

#include <cstddef>
#include <cstdint>

namespace dgc {

// Hands out stretches of memory, counted in floats, that each start on a 64-byte boundary. If the memory is null, it
// only counts.
class Pieces {
 public:
  explicit Pieces(void* memory) : memory_(static_cast<float*>(memory)) {}
  float* take(int64_t floats) {
    float* const piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += (floats + 15) / 16 * 16;
    return piece;
  }
  size_t bytes() const { return static_cast<size_t>(used_) * sizeof(float); }

 private:
  float* memory_;
  int64_t used_ = 0;
};

}  // namespace dgc
