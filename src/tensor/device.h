#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace dgc {

// Where memory lies and how it moves. One per rank; it outlives everything allocated on it.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "cpu", "cuda:0"

  // 64-byte aligned, zeroed. Throws UserError that names the size when memory is short. bytes may be 0.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) noexcept = 0;

  virtual void copy_in(void* to_device, const void* from_host, size_t bytes) = 0;
  virtual void copy_out(void* to_host, const void* from_device, size_t bytes) = 0;
  virtual void zero(void* memory, size_t bytes) = 0;
  virtual void synchronize() = 0;  // returns when all queued work is done

  // Most bytes ever allocated at once.
  virtual size_t peak_bytes() const = 0;
};

std::shared_ptr<Device> make_cpu_device();

// Owns a stretch of device memory.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<Device> device, size_t bytes);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  size_t bytes() const { return bytes_; }
  void* data() const { return data_; }
  float* f32() const { return static_cast<float*>(data_); }
  Device& device() const { return *device_; }

 private:
  std::shared_ptr<Device> device_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace dgc
