#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace dgc {

// Copies from host memory to device memory, so that a batch can travel while the batch before it is computed. The calls
// are stage(), arrive() and release(), in this order, again and again.
class Upload {
 public:
  virtual ~Upload() = default;
  // Starts the copy. `host` may be reused when the call returns.
  virtual void stage(const void* host, size_t bytes) = 0;
  // Returns the device memory. All later work on the device waits until the data is there.
  virtual const void* arrive() = 0;
  // Says that all work that reads the data is queued, so that the memory may be written again.
  virtual void release() = 0;
};

// Copies a small result from device memory to host memory, where the host looks at it later.
class Download {
 public:
  virtual ~Download() = default;
  virtual void start(const void* device_memory) = 0;  // queues the copy behind all earlier work
  virtual bool ready() = 0;                           // says whether wait() would return at once
  virtual const void* wait() = 0;                     // returns host memory that is valid until the next start()
};

// Host memory that the device copies from and to at full speed. For a GPU it is pinned.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  virtual std::byte* data() = 0;
};

// The time between two points of a device's queue.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void start() = 0;           // queues the first point
  virtual void stop() = 0;            // queues the second point
  virtual double milliseconds() = 0;  // waits for the second point, then returns the time between the two
};

// What memory is for, as dgc plan lists it.
enum class MemoryUse {
  weights,
  gradients,    // of the rank's workers, and the sums of their groups
  residuals,    // u and v; for sgd in fp16 what rounding has held back
  momentum,     // shared by the rank's workers, and the sums that enter it
  messages,     // the workers', and those of all ranks or what sums them up
  activations,  // shared by training and evaluation
  batches,      // the inputs on the device, and what is on its way to them
  scratch,      // what a backend keeps for its ops
  other,
};
inline constexpr size_t kMemoryUses = static_cast<size_t>(MemoryUse::other) + 1;

// Where memory lies and how it moves. Each rank has one device, which outlives all memory that is allocated on it.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "cpu", "cuda:0"

  // Returns zeroed memory that is aligned to 64 bytes. `bytes` may be 0. Throws UserError, which names the size, when
  // memory is short.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) noexcept = 0;
  // As allocate(), for memory that is freed before anything else is allocated or recorded.
  virtual void* allocate_briefly(size_t bytes) { return allocate(bytes); }
  // How often allocate() has been called, as far as a backend that records steps has to know. While this number stays
  // the same, all addresses stay valid, and so do recordings, which hold addresses. invalidate_recordings() changes it.
  virtual size_t allocations() const { return 0; }
  virtual void invalidate_recordings() {}
  // Called by those who allocate, with what the memory is for, and before they free it with negative bytes. Only a
  // device that counts its memory listens.
  virtual void count(MemoryUse, int64_t /*bytes*/) noexcept {}

  // True where a call only queues its work and may return before the work is done, as on a GPU. False where a call
  // returns when its work is done.
  virtual bool queues() const = 0;

  // These take effect in the order of the calls. copy_in returns when `from_host` may be reused, and copy_out returns
  // when `to_host` is filled.
  virtual void copy_in(void* to_device, const void* from_host, size_t bytes) = 0;
  virtual void copy_out(void* to_host, const void* from_device, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;  // both are on this device and do not overlap
  virtual void zero(void* memory, size_t bytes) = 0;
  virtual void synchronize() = 0;  // returns when all queued work is done

  virtual std::unique_ptr<Upload> make_upload(size_t bytes) = 0;      // for at most `bytes` at once
  virtual std::unique_ptr<Download> make_download(size_t bytes) = 0;  // for exactly `bytes`
  virtual std::unique_ptr<Stopwatch> make_stopwatch() = 0;

  // The most bytes that have been allocated at one time.
  virtual size_t peak_bytes() const = 0;
  // Bytes of the device's own memory that nobody has allocated; 0 for a device that uses the host's.
  virtual size_t free_bytes() const { return 0; }

  // What communicators need, which pass data on to other processes.
  virtual bool on_host() const = 0;             // says whether the host can use the device's memory
  virtual std::string bus_address() const = 0;  // identifies a GPU in all processes of a machine; empty for a CPU
  virtual std::unique_ptr<HostMemory> make_host_memory(size_t bytes) = 0;
};

std::shared_ptr<Device> make_cpu_device();

// Owns a stretch of device memory.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<Device> device, size_t bytes, MemoryUse use = MemoryUse::other);
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
  MemoryUse use_ = MemoryUse::other;
};

// Returns the memory of `buffer`, which is replaced if it has fewer bytes. The old memory, and what is in it, is given
// back before the new memory is asked for, as both might not fit at once.
std::byte* at_least(size_t bytes, Buffer& buffer, const std::shared_ptr<Device>&, MemoryUse);

}  // namespace dgc
