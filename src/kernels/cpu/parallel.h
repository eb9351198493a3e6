#pragma once

#include <algorithm>
#include <cstdint>

namespace dgc {

// Calls body(first, size) for consecutive stretches of 0 ... n-1, in parallel. The stretches do not depend on the
// number of threads. body must not throw.
template <typename Body>
void for_chunks(int64_t n, int64_t chunk, const Body& body) {
  const int64_t count = (n + chunk - 1) / chunk;
#pragma omp parallel for schedule(static) if (count > 1)
  for (int64_t i = 0; i < count; ++i) body(i * chunk, std::min(chunk, n - i * chunk));
}

inline constexpr int64_t kElementwiseChunk =
    16384;  // 64 KiB per array: long against a loop's start, short against a cache

}  // namespace dgc
