#pragma once

#include <memory>
#include <string>

#include "tensor/device.h"

namespace dgc::test {

// The CPU, for a test that changes some of what it does.
class WrappedDevice : public Device {
 public:
  std::string name() const override { return cpu_->name(); }
  void* allocate(size_t bytes) override { return cpu_->allocate(bytes); }
  void free(void* memory, size_t bytes) noexcept override { cpu_->free(memory, bytes); }
  bool queues() const override { return cpu_->queues(); }
  void copy_in(void* to, const void* from, size_t bytes) override { cpu_->copy_in(to, from, bytes); }
  void copy_out(void* to, const void* from, size_t bytes) override { cpu_->copy_out(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override { cpu_->copy(to, from, bytes); }
  void zero(void* memory, size_t bytes) override { cpu_->zero(memory, bytes); }
  void synchronize() override { cpu_->synchronize(); }
  std::unique_ptr<Upload> make_upload(size_t bytes) override { return cpu_->make_upload(bytes); }
  std::unique_ptr<Download> make_download(size_t bytes) override { return cpu_->make_download(bytes); }
  std::unique_ptr<Stopwatch> make_stopwatch() override { return cpu_->make_stopwatch(); }
  size_t peak_bytes() const override { return cpu_->peak_bytes(); }
  bool on_host() const override { return cpu_->on_host(); }
  std::string bus_address() const override { return cpu_->bus_address(); }
  std::unique_ptr<HostMemory> make_host_memory(size_t bytes) override { return cpu_->make_host_memory(bytes); }

 private:
  std::shared_ptr<Device> cpu_ = make_cpu_device();
};

}  // namespace dgc::test
