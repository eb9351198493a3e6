#pragma once

#include <cstddef>
#include <cstdint>

namespace dgc {

// Cuts a stretch of memory into arrays, one behind the other, that each begin at a multiple of 256 bytes from its
// start, as GPUs like them. Without memory it gives null pointers and only counts: so the code that takes the arrays
// runs twice, first to find out how many bytes they need.
class Carver {
 public:
  explicit Carver(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}

  template <typename T>
  T* take(int64_t count) {
    T* const array = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return array;
  }
  size_t bytes() const { return bytes_; }  // of all arrays so far

 private:
  std::byte* memory_;
  size_t bytes_ = 0;
};

}  // namespace dgc
