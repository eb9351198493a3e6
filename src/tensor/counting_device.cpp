#include "tensor/counting_device.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tensor/direct_upload.h"

namespace dgc {
namespace {

// Zeros, as there is nothing to read.
class CountingDownload final : public Download {
 public:
  explicit CountingDownload(size_t bytes) : zeros_(bytes) {}
  void start(const void*) override {}
  bool ready() override { return true; }
  const void* wait() override { return zeros_.data(); }

 private:
  std::vector<std::byte> zeros_;
};

}  // namespace

void* CountingDevice::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  constexpr uintptr_t kAlignment = 256;
  const uintptr_t place = next_;
  next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return reinterpret_cast<void*>(place);
}

void MemoryCount::add(MemoryUse use, int64_t bytes) {
  const auto i = static_cast<size_t>(use);
  peak_[i] = std::max(peak_[i], now_[i] += bytes);
  peak_total_ = std::max(peak_total_, total_ += bytes);
}

std::unique_ptr<Upload> CountingDevice::make_upload(size_t bytes) {
  return std::make_unique<DirectUpload>(*this, bytes);
}

std::unique_ptr<Download> CountingDevice::make_download(size_t bytes) {
  return std::make_unique<CountingDownload>(bytes);
}

// What lies on the host is real, and the CPU's device has it.
std::unique_ptr<Stopwatch> CountingDevice::make_stopwatch() { return make_cpu_device()->make_stopwatch(); }

std::unique_ptr<HostMemory> CountingDevice::make_host_memory(size_t bytes) {
  return make_cpu_device()->make_host_memory(bytes);
}

}  // namespace dgc
