#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace dgc {

// A one-way street from host memory to the device's, so that a batch can travel while the one before it is computed.
class Upload {
 public:
  virtual ~Upload() = default;
  virtual void stage(const void* host, size_t bytes) = 0;  // starts; `host` may be reused on return
  virtual const void* arrive() = 0;                        // device memory; later work on the device waits for the data
  virtual void release() = 0;                              // once the work that reads it is queued; then stage() again
};

// The other way: a small result that the host looks at later.
class Download {
 public:
  virtual ~Download() = default;
  virtual void start(const void* device_memory) = 0;  // queued behind the work so far
  virtual bool ready() = 0;                           // whether wait() would return at once
  virtual const void* wait() = 0;                     // host memory, valid until the next start()
};

// Host memory that copies to and from a device reach at full speed; pinned for a GPU.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  virtual std::byte* data() = 0;
};

// The time between two points of a device's queue.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void start() = 0;           // queued
  virtual void stop() = 0;            // queued
  virtual double milliseconds() = 0;  // from start() to stop(); waits for the latter
};

// Where memory lies and how it moves. One per rank; it outlives everything allocated on it.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "cpu", "cuda:0"

  // 64-byte aligned, zeroed. Throws UserError that names the size when memory is short. bytes may be 0.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) noexcept = 0;

  // Whether work is queued, so that a call may return before it is done; else everything is done at once.
  virtual bool queues() const = 0;

  // Each call below comes after all earlier ones. copy_in returns when `from_host` may be
  // reused, copy_out when `to_host` is filled.
  virtual void copy_in(void* to_device, const void* from_host, size_t bytes) = 0;
  virtual void copy_out(void* to_host, const void* from_device, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;  // both on this device, apart from each other
  virtual void zero(void* memory, size_t bytes) = 0;
  virtual void synchronize() = 0;  // returns when all queued work is done

  virtual std::unique_ptr<Upload> make_upload(size_t bytes) = 0;      // for pieces of at most so many
  virtual std::unique_ptr<Download> make_download(size_t bytes) = 0;  // of exactly so many
  virtual std::unique_ptr<Stopwatch> make_stopwatch() = 0;

  // Most bytes ever allocated at once.
  virtual size_t peak_bytes() const = 0;

  // For who passes data on to other processes.
  virtual bool on_host() const = 0;             // whether its memory is the host's too
  virtual std::string bus_address() const = 0;  // of a GPU, the same for all processes of a machine; else empty
  virtual std::unique_ptr<HostMemory> make_host_memory(size_t bytes) = 0;
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
