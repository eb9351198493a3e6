#pragma once

#include <array>
#include <memory>

#include "tensor/device.h"

namespace dgc {

// Sums up what memory is for.
class MemoryCount {
 public:
  void add(MemoryUse, int64_t bytes);  // negative: it is freed
  // The most bytes at one time, for a use and in all.
  int64_t peak(MemoryUse use) const { return peak_[static_cast<size_t>(use)]; }
  int64_t peak_total() const { return peak_total_; }

 private:
  std::array<int64_t, kMemoryUses> now_{}, peak_{};
  int64_t total_ = 0, peak_total_ = 0;
};

// A device without memory: it counts what its users allocate, in one thread, and moves nothing. Nothing may look at
// what its pointers point to.
class CountingDevice final : public Device {
 public:
  const MemoryCount& counted() const { return counted_; }
  int64_t moved() const { return moved_; }  // bytes that copy() and zero() have read and written

  std::string name() const override { return "counting"; }
  void* allocate(size_t bytes) override;
  void free(void*, size_t) noexcept override {}
  void count(MemoryUse use, int64_t bytes) noexcept override { counted_.add(use, bytes); }
  bool queues() const override { return false; }
  void copy_in(void*, const void*, size_t) override {}
  void copy_out(void*, const void*, size_t) override {}
  void copy(void*, const void*, size_t bytes) override { moved_ += 2 * static_cast<int64_t>(bytes); }
  void zero(void*, size_t bytes) override { moved_ += static_cast<int64_t>(bytes); }
  void synchronize() override {}
  std::unique_ptr<Upload> make_upload(size_t bytes) override;
  std::unique_ptr<Download> make_download(size_t bytes) override;
  std::unique_ptr<Stopwatch> make_stopwatch() override;
  size_t peak_bytes() const override { return static_cast<size_t>(counted_.peak_total()); }
  bool on_host() const override { return false; }
  std::string bus_address() const override { return ""; }
  std::unique_ptr<HostMemory> make_host_memory(size_t bytes) override;

 private:
  MemoryCount counted_;
  int64_t moved_ = 0;
  uintptr_t next_ = uintptr_t{1} << 40;
};

}  // namespace dgc
