#include "tensor/device.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/control_groups.h"
#include "tensor/direct_upload.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 register

// What the machine, or the container, can give without taking it from others; nothing where it does not say. Linux
// promises more, and ends the process, or another one, when it is used.
std::optional<size_t> available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::optional<size_t> available;
  size_t kibibytes = 0;
  std::string name, unit;
  while (file >> name >> kibibytes && std::getline(file, unit)) {
    if (name == "MemAvailable:" || name == "SwapFree:") available = available.value_or(0) + kibibytes * 1024;
  }
  const std::optional<size_t> left = memory_left();
  if (available && left) return std::min(*available, *left);
  return available ? available : left;
}

// Asking takes longer than a small allocation.
void require_available(size_t bytes) {
  constexpr size_t kLarge = size_t{1} << 26;
  if (bytes < kLarge) return;
  const std::optional<size_t> available = available_bytes();
  if (!available || bytes <= *available) return;
  throw_user_error(
      "out of memory: {:.1f} MiB more are needed and {:.1f} MiB are there; dgc plan CONFIG lists what takes them: "
      "lower training.batch_per_worker, training.eval_batch or the model's sizes",
      bytes / 1048576.0, *available / 1048576.0);
}

class CpuDownload final : public Download {
 public:
  explicit CpuDownload(size_t bytes) : memory_(bytes) {}
  void start(const void* memory) override { std::memcpy(memory_.data(), memory, memory_.size()); }
  bool ready() override { return true; }
  const void* wait() override { return memory_.data(); }

 private:
  std::vector<std::byte> memory_;
};

class CpuHostMemory final : public HostMemory {
 public:
  explicit CpuHostMemory(size_t bytes) : memory_(bytes) {}
  std::byte* data() override { return memory_.data(); }

 private:
  std::vector<std::byte> memory_;
};

class CpuStopwatch final : public Stopwatch {
 public:
  void start() override { start_ = Clock::now(); }
  void stop() override { stop_ = Clock::now(); }
  double milliseconds() override { return std::chrono::duration<double, std::milli>(stop_ - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_, stop_;
};

class CpuDevice final : public Device {
 public:
  std::string name() const override { return "cpu"; }
  std::string bus_address() const override { return ""; }
  bool on_host() const override { return true; }
  bool queues() const override { return false; }

  void* allocate(size_t bytes) override {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded == 0) return nullptr;
    require_available(bytes);
    void* memory = std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) throw_user_error("out of memory: {:.1f} MiB more are needed", bytes / 1048576.0);
    std::memset(memory, 0, rounded);
    const size_t now = current_ += bytes;
    size_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    return memory;
  }
  void free(void* memory, size_t bytes) noexcept override {
    std::free(memory);
    if (memory != nullptr) current_ -= bytes;
  }
  void copy_in(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void copy_out(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void zero(void* memory, size_t bytes) override {
    if (bytes > 0) std::memset(memory, 0, bytes);
  }
  void synchronize() override {}
  std::unique_ptr<Upload> make_upload(size_t bytes) override { return std::make_unique<DirectUpload>(*this, bytes); }
  std::unique_ptr<Download> make_download(size_t bytes) override { return std::make_unique<CpuDownload>(bytes); }
  std::unique_ptr<HostMemory> make_host_memory(size_t bytes) override { return std::make_unique<CpuHostMemory>(bytes); }
  std::unique_ptr<Stopwatch> make_stopwatch() override { return std::make_unique<CpuStopwatch>(); }
  size_t peak_bytes() const override { return peak_; }

 private:
  std::atomic<size_t> current_ = 0;
  std::atomic<size_t> peak_ = 0;
};

}  // namespace

std::shared_ptr<Device> make_cpu_device() { return std::make_shared<CpuDevice>(); }

Buffer::Buffer(std::shared_ptr<Device> device, size_t bytes, MemoryUse use)
    : device_(std::move(device)), data_(device_->allocate(bytes)), bytes_(bytes), use_(use) {
  if (data_ != nullptr) device_->count(use_, static_cast<int64_t>(bytes_));
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::move(other.device_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      use_(other.use_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(use_, other.use_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  device_->count(use_, -static_cast<int64_t>(bytes_));
  device_->free(data_, bytes_);
}

std::byte* at_least(size_t bytes, Buffer& buffer, const std::shared_ptr<Device>& device, MemoryUse use) {
  if (bytes > buffer.bytes()) {
    buffer = Buffer();
    buffer = Buffer(device, bytes, use);
  }
  return static_cast<std::byte*>(buffer.data());
}

}  // namespace dgc
