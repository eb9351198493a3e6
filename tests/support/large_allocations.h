#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>

// Counts heap allocations as large as data. Include it in ONE file of a test program: it replaces malloc.
//
// Small ones do not count: oneDNN makes small maps of arguments in every call. Under a sanitizer, which has a malloc of
// its own, nothing is counted: kCountsAllocations says so, and the test must skip aloud.
#if defined(__GLIBC__) && !defined(DGC_SANITIZED)
namespace dgc {
inline constexpr bool kCountsAllocations = true;
inline constexpr size_t kLargeAllocation = 4096;
inline std::atomic<int> large_allocations = 0;
inline void count_allocation(size_t bytes) {
  if (bytes >= kLargeAllocation) ++large_allocations;
}
}  // namespace dgc

extern "C" {
void* __libc_malloc(size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t bytes) {
  dgc::count_allocation(bytes);
  return __libc_malloc(bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  dgc::count_allocation(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  dgc::count_allocation(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? 12 : 0;  // ENOMEM
}
}
#else
namespace dgc {
inline constexpr bool kCountsAllocations = false;
inline std::atomic<int> large_allocations = 0;
}  // namespace dgc
#endif
