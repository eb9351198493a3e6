#pragma once

#include "tensor/device.h"
#include "tensor/errors.h"

namespace dgc {

// An upload to a device that queues nothing: data is there as soon as stage() has copied it.
class DirectUpload final : public Upload {
 public:
  DirectUpload(Device& device, size_t bytes) : device_(device), bytes_(bytes), memory_(device.allocate(bytes)) {
    device_.count(MemoryUse::batches, static_cast<int64_t>(bytes_));
  }
  ~DirectUpload() override {
    device_.count(MemoryUse::batches, -static_cast<int64_t>(bytes_));
    device_.free(memory_, bytes_);
  }
  DirectUpload(const DirectUpload&) = delete;
  DirectUpload& operator=(const DirectUpload&) = delete;
  void stage(const void* host, size_t bytes) override {
    DGC_CHECK(bytes <= bytes_, "an upload's size");
    device_.copy_in(memory_, host, bytes);
  }
  const void* arrive() override { return memory_; }
  void release() override {}

 private:
  Device& device_;
  size_t bytes_;
  void* memory_;
};

}  // namespace dgc
