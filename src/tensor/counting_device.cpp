#include "tensor/counting_device.h"

#include <algorithm>

#include "tensor/errors.h"

namespace dgc {
namespace {

// An upload has a place on the device where its data arrives.
class CountedUpload final : public Upload {
 public:
  CountedUpload(Device& device, size_t bytes) : device_(device), bytes_(bytes), memory_(device.allocate(bytes)) {
    device_.count(MemoryUse::batches, static_cast<int64_t>(bytes_));
  }
  ~CountedUpload() override {
    device_.count(MemoryUse::batches, -static_cast<int64_t>(bytes_));
    device_.free(memory_, bytes_);
  }
  CountedUpload(const CountedUpload&) = delete;
  CountedUpload& operator=(const CountedUpload&) = delete;
  void stage(const void*, size_t) override {}
  const void* arrive() override { return memory_; }
  void release() override {}

 private:
  Device& device_;
  size_t bytes_;
  void* memory_;
};

}  // namespace

void* CountingDevice::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  current_ += bytes;
  peak_total_ = std::max(peak_total_, current_);
  constexpr uintptr_t kAlignment = 256;
  const uintptr_t place = next_;
  next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return reinterpret_cast<void*>(place);
}

void CountingDevice::count(MemoryUse use, int64_t bytes) noexcept {
  int64_t& now = now_[static_cast<size_t>(use)];
  int64_t& peak = peak_[static_cast<size_t>(use)];
  now += bytes;
  peak = std::max(peak, now);
}

std::unique_ptr<Upload> CountingDevice::make_upload(size_t bytes) {
  return std::make_unique<CountedUpload>(*this, bytes);
}

// What lies on the host is real, and the CPU's device has it.
std::unique_ptr<Download> CountingDevice::make_download(size_t bytes) {
  return make_cpu_device()->make_download(bytes);
}

std::unique_ptr<Stopwatch> CountingDevice::make_stopwatch() { return make_cpu_device()->make_stopwatch(); }

std::unique_ptr<HostMemory> CountingDevice::make_host_memory(size_t bytes) {
  return make_cpu_device()->make_host_memory(bytes);
}

}  // namespace dgc
