// Device memory lies in pages of its own. A kernel that leaves its allocation or uses freed memory ends with a
// segmentation fault. So does, in stretches of the program that are drawn, host code that follows a device pointer.
// Addresses are never used twice. Memory starts full of 0xff, which is NaN as a float.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/fake_cuda/runtime.h"

namespace dgc::fake_cuda {
namespace {

constexpr size_t kReserved = size_t{1} << 38, kPage = 4096, kAlignment = 256;
constexpr size_t kFilled = size_t{1} << 15;  // at most so many bytes at either end are filled
constexpr size_t kLarge = size_t{1} << 20;   // see fill()
constexpr uint64_t kProtected = 32;          // memory is protected after one of so many pieces of work
constexpr unsigned char kSlack = 0xa5;       // behind an allocation, up to the next multiple of kAlignment

int access_depth = 0;  // these two are guarded by the machine's mutex
bool accessible = false;
std::byte* next_page = nullptr;
std::byte* end_of_pages = nullptr;

std::byte* take_pages(size_t bytes) {
  if (next_page == nullptr) {
    void* const reserved = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) refuse(cudaErrorMemoryAllocation, "the system gives no addresses for device memory");
    next_page = static_cast<std::byte*>(reserved);
    end_of_pages = next_page + kReserved;
  }
  if (bytes + kPage > static_cast<size_t>(end_of_pages - next_page)) {
    refuse(cudaErrorMemoryAllocation, "the fake has used up its addresses, which it takes only once");
  }
  std::byte* const pages = next_page;
  next_page += bytes + kPage;  // one page that is never accessible stays between
  return pages;
}

void protect(const Allocation& a, bool open) {
  mprotect(a.pages, a.page_bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void protect_all(bool open) {
  if (accessible == open) return;
  accessible = open;
  for (const auto& [address, allocation] : machine().device_memory) protect(allocation, open);
}

// The entry of `memory` that holds the address, or its end.
auto find(const std::map<uintptr_t, Allocation>& memory, const void* pointer) {
  auto it = memory.upper_bound(reinterpret_cast<uintptr_t>(pointer));
  if (it == memory.begin()) return memory.end();
  --it;
  return reinterpret_cast<uintptr_t>(pointer) < it->first + std::max<size_t>(it->second.bytes, 1) ? it : memory.end();
}

bool holds(const std::map<uintptr_t, Allocation>& memory, const void* pointer, size_t bytes) {
  const auto it = find(memory, pointer);
  return it != memory.end() && reinterpret_cast<uintptr_t>(pointer) + bytes <= it->first + it->second.bytes;
}

// Large zeroed memory, such as workspaces that small networks hardly use, is given back to the system, which hands out
// zeros in the place of what is used.
void fill(std::byte* memory, int value, size_t bytes) {
  if (value != 0 || bytes < kLarge) {
    std::memset(memory, value, bytes);
    return;
  }
  const size_t before = (kPage - reinterpret_cast<uintptr_t>(memory) % kPage) % kPage;
  const size_t pages = (bytes - before) / kPage * kPage;
  std::memset(memory, 0, before);
  madvise(memory + before, pages, MADV_DONTNEED);
  std::memset(memory + before + pages, 0, bytes - before - pages);
}

size_t slack(size_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

void allocate(void** to, size_t bytes) {
  Machine& m = machine();
  if (bytes == 0) {
    *to = nullptr;
    return;
  }
  if (bytes > m.options.memory - std::min(m.options.memory, m.device_bytes)) {
    refuse(cudaErrorMemoryAllocation, "the device has no {} bytes left", bytes);
  }
  const size_t rounded = bytes + slack(bytes), page_bytes = (rounded + kPage - 1) / kPage * kPage;
  std::byte* const pages = take_pages(page_bytes);
  std::byte* const begin = pages + page_bytes - rounded;  // its end is the end of the pages
  const Allocation made{bytes, pages, page_bytes};
  protect(made, true);
  std::memset(begin, 0xff, std::min(bytes, kFilled));
  if (bytes > kFilled) std::memset(begin + bytes - kFilled, 0xff, kFilled);
  std::memset(begin + bytes, kSlack, slack(bytes));
  if (!accessible) protect(made, false);
  m.device_memory[reinterpret_cast<uintptr_t>(begin)] = made;
  m.device_bytes += bytes;
  *to = begin;
}

void release(void* memory) {
  Machine& m = machine();
  if (memory == nullptr) return;
  const auto it = m.device_memory.find(reinterpret_cast<uintptr_t>(memory));
  if (it == m.device_memory.end()) refuse(cudaErrorInvalidValue, "the memory was not allocated, or is already free");
  refuse_while_capturing();
  m.finish_device(current_device());
  const Allocation& a = it->second;
  bool intact = true;
  {
    const DeviceAccess access;
    const auto* const behind = static_cast<unsigned char*>(memory) + a.bytes;
    intact = std::all_of(behind, behind + slack(a.bytes), [](unsigned char byte) { return byte == kSlack; });
  }
  madvise(a.pages, a.page_bytes, MADV_DONTNEED);
  protect(a, false);
  m.device_bytes -= a.bytes;
  m.device_memory.erase(it);
  if (!intact) refuse(cudaErrorIllegalAddress, "something was written behind the end of the memory");
}

}  // namespace

DeviceAccess::DeviceAccess() {
  ++access_depth;
  protect_all(true);
}

// Protecting costs more time than most kernels, so memory mostly stays as it is.
DeviceAccess::~DeviceAccess() {
  if (--access_depth == 0 && machine().draw(kProtected) == 0) protect_all(false);
}

bool on_device(const void* pointer, size_t bytes) { return holds(machine().device_memory, pointer, bytes); }
bool on_host_pinned(const void* pointer, size_t bytes) { return holds(machine().host_memory, pointer, bytes); }
bool touches_device(const void* pointer) {
  const auto* const p = static_cast<const std::byte*>(pointer);
  return next_page != nullptr && p >= end_of_pages - kReserved && p < end_of_pages;
}

void require_device(int code, const char* what, const void* pointer, size_t bytes, size_t alignment) {
  if (bytes == 0) return;
  if (!on_device(pointer, bytes)) {
    refuse(code, "{} ({}, {} bytes) does not lie in an allocation of the device", what, pointer, bytes);
  }
  if (reinterpret_cast<uintptr_t>(pointer) % alignment != 0) refuse(code, "{} is not aligned to {}", what, alignment);
}

}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return runtime_call("cudaMalloc", WhileCapturing::refused, [&] { allocate(memory, bytes); });
}

cudaError_t cudaFree(void* memory) {
  return ending_call("cudaFree", [&] { release(memory); });
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return runtime_call("cudaMallocHost", WhileCapturing::refused, [&] {
    *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (*memory == nullptr) refuse(cudaErrorMemoryAllocation, "the host has no {} bytes left", bytes);
    std::memset(*memory, 0xff, bytes);
    machine().host_memory[reinterpret_cast<uintptr_t>(*memory)] = {bytes, nullptr, 0};
  });
}

cudaError_t cudaFreeHost(void* memory) {
  return ending_call("cudaFreeHost", [&] {
    if (memory == nullptr) return;
    refuse_while_capturing();
    if (machine().host_memory.erase(reinterpret_cast<uintptr_t>(memory)) == 0) {
      refuse(cudaErrorInvalidValue, "the memory was not allocated, or is already free");
    }
    std::free(memory);
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return runtime_call("cudaMemGetInfo", WhileCapturing::allowed, [&] {
    *total = machine().options.memory;
    *free = *total - std::min(*total, machine().device_bytes);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return runtime_call("cudaMemcpyAsync", WhileCapturing::allowed, [&] {
    Machine& m = machine();
    require_handle(m.streams, stream, "the stream");
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (to_device) require_device(cudaErrorInvalidValue, "the target", to, bytes, 1);
    if (from_device) require_device(cudaErrorInvalidValue, "the source", from, bytes, 1);
    const void* const host = to_device ? from : to;
    const bool all_on_device = to_device && from_device;
    if (!all_on_device && touches_device(host)) refuse(cudaErrorInvalidValue, "device memory is given as the host's");
    if (all_on_device) {
      m.enqueue(stream, "cudaMemcpyAsync", [to, from, bytes] { std::memcpy(to, from, bytes); });
      return;
    }
    if (on_host_pinned(host, bytes)) {
      m.enqueue(stream, "cudaMemcpyAsync", [to, from, bytes, host] {
        if (!on_host_pinned(host, bytes)) refuse(0, "a copy comes after its pinned memory has been freed");
        std::memcpy(to, from, bytes);
      });
      return;
    }
    if (stream->capture != nullptr) {
      m.invalidate(*stream->capture);
      refuse(cudaErrorStreamCaptureUnsupported, "pageable memory cannot be copied while a stream is captured");
    }
    if (to_device) {  // returns when the source has been read, which is before the copy arrives
      const auto* const begin = static_cast<const std::byte*>(from);
      m.enqueue(stream, "cudaMemcpyAsync", [to, staged = std::vector<std::byte>(begin, begin + bytes)] {
        std::memcpy(to, staged.data(), staged.size());
      });
      return;
    }
    m.finish({m.enqueue(stream, "cudaMemcpyAsync", [to, from, bytes] { std::memcpy(to, from, bytes); })});
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return runtime_call("cudaMemsetAsync", WhileCapturing::allowed, [&] {
    require_device(cudaErrorInvalidValue, "the target", memory, bytes, 1);
    machine().enqueue(stream, "cudaMemsetAsync",
                      [memory, value, bytes] { fill(static_cast<std::byte*>(memory), value, bytes); });
  });
}
