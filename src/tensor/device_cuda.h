#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensor/device.h"

// CUDA's own names for these types, so that files that include this header need none of CUDA's headers.
struct CUstream_st;
struct CUevent_st;

namespace dgc {

// One GPU. All of a rank's work is queued on one stream, stream(), except for work that a lane does. Uploads travel on
// a second stream, so that they wait only for what was queued before the buffer they overwrite was released. Only the
// thread that made the device, or a thread that has called use(), may call its methods and launch kernels.
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index);  // throws UserError when there is no such GPU, or no driver
  ~CudaDevice() override;

  // Returns the same GPU with another stream. Work on that stream runs beside this stream's work, and has priority over
  // it, or the same priority. Both devices may use each other's memory, and count it together.
  enum class Priority { over_this, same };
  std::shared_ptr<CudaDevice> make_beside(Priority = Priority::over_this) const;
  bool is_same_gpu(const CudaDevice& other) const { return index_ == other.index_; }
  // All work that is queued on this stream from now on waits for the work that is queued on the other stream so far.
  // The call may be recorded in a CUDA graph.
  void follow(const CudaDevice& other);

  CUstream_st* stream() const { return stream_; }        // a cudaStream_t
  CUstream_st* copy_stream() const { return copying_; }  // likewise
  int multiprocessors() const { return multiprocessors_; }
  size_t total_bytes() const;  // of memory
  std::string model() const;   // "NVIDIA H200"
  void use() const;            // makes this GPU the calling thread's device

  std::string name() const override;
  std::string bus_address() const override;
  bool on_host() const override { return false; }
  void* allocate(size_t bytes) override;
  void free(void* memory, size_t bytes) noexcept override;
  void* allocate_briefly(size_t bytes) override;
  size_t allocations() const override { return memory_->allocations; }
  void invalidate_recordings() override { ++memory_->allocations; }
  bool queues() const override { return true; }
  void copy_in(void* to_device, const void* from_host, size_t bytes) override;
  void copy_out(void* to_host, const void* from_device, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void zero(void* memory, size_t bytes) override;
  void synchronize() override;
  std::unique_ptr<Upload> make_upload(size_t bytes) override;
  std::unique_ptr<Download> make_download(size_t bytes) override;
  std::unique_ptr<HostMemory> make_host_memory(size_t bytes) override;
  std::unique_ptr<Stopwatch> make_stopwatch() override;
  size_t peak_bytes() const override { return memory_->peak; }
  size_t free_bytes() const override;

 private:
  struct Memory {
    std::atomic<size_t> allocations = 0, current = 0, peak = 0;
  };
  CudaDevice(int index, std::shared_ptr<Memory> memory) : index_(index), memory_(std::move(memory)) {}
  CudaDevice(int index, std::shared_ptr<Memory> memory, int priority);

  int index_;
  std::shared_ptr<Memory> memory_;
  int multiprocessors_ = 0;
  CUstream_st* stream_ = nullptr;
  CUstream_st* copying_ = nullptr;
  CUevent_st* reached_ = nullptr;  // marks the point of this stream that another stream waits for
};

// `error` is a cudaError_t. Throws nothing on success, UserError where this program has no code for the GPU, or where
// the GPU is busy or has no memory left, and otherwise InternalError that names the call.
void check_cuda(int error, const char* call);
// Throws UserError: the GPU had no memory left for the call.
[[noreturn]] void throw_gpu_is_full(const char* call);

// The numbers that CudaDevice takes. `description` names all GPUs, or says why there are none.
struct CudaDevices {
  std::vector<int> usable;
  std::string description;
};
CudaDevices find_cuda_devices();

}  // namespace dgc
