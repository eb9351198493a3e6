#pragma once

#include <cstdint>

namespace dgc::cuda {

// The widest access of a thread, and what cuDNN's plans are told of images, both in bytes. All buffers begin so, but a
// part of one need not.
inline constexpr int64_t kAlignment = 16;

// True if all pointers are aligned to kAlignment. Null pointers count as aligned.
template <typename... Pointers>
bool aligned(Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % kAlignment == 0) && ...);
}

}  // namespace dgc::cuda
