#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tensor/device.h"

namespace dgc::test {

// Memory that the host cannot touch: addresses that belong to nobody until a copy translates them. Where there is no
// GPU, what crosses the host's memory on its way is tested with it.
class FarDevice final : public Device {
 public:
  std::string name() const override { return "far"; }
  std::string bus_address() const override { return ""; }
  bool on_host() const override { return false; }
  bool queues() const override { return false; }
  void* allocate(size_t bytes) override { return bytes == 0 ? nullptr : far(near_->allocate(bytes)); }
  void free(void* memory, size_t bytes) noexcept override {
    if (memory != nullptr) near_->free(const_cast<void*>(close(memory)), bytes);
  }
  void copy_in(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) near_->copy_in(const_cast<void*>(close(to)), from, bytes);
  }
  void copy_out(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) near_->copy_out(to, close(from), bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) near_->copy(const_cast<void*>(close(to)), close(from), bytes);
  }
  void zero(void* memory, size_t bytes) override {
    if (bytes > 0) near_->zero(const_cast<void*>(close(memory)), bytes);
  }
  void synchronize() override {}
  std::unique_ptr<Upload> make_upload(size_t bytes) override { return near_->make_upload(bytes); }
  std::unique_ptr<Download> make_download(size_t bytes) override { return std::make_unique<FarDownload>(*this, bytes); }
  std::unique_ptr<HostMemory> make_host_memory(size_t bytes) override { return near_->make_host_memory(bytes); }
  std::unique_ptr<Stopwatch> make_stopwatch() override { return near_->make_stopwatch(); }
  size_t peak_bytes() const override { return near_->peak_bytes(); }

 private:
  class FarDownload final : public Download {
   public:
    FarDownload(FarDevice& device, size_t bytes)
        : device_(device), bytes_(bytes), memory_(device.make_host_memory(bytes)) {}
    void start(const void* memory) override { device_.copy_out(memory_->data(), memory, bytes_); }
    bool ready() override { return true; }
    const void* wait() override { return memory_->data(); }

   private:
    FarDevice& device_;
    size_t bytes_;
    std::unique_ptr<HostMemory> memory_;
  };

  // No program's memory lies there: the upper half of the addresses is not its own.
  static constexpr uintptr_t kFar = uintptr_t{1} << 63;
  static void* far(void* memory) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(memory) | kFar); }
  static const void* close(const void* memory) {
    return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(memory) & ~kFar);
  }

  std::shared_ptr<Device> near_ = make_cpu_device();
};

}  // namespace dgc::test
