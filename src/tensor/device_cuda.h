#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "tensor/device.h"

// CUDA's own name, so that who includes this needs none of its headers.
struct CUstream_st;
struct CUevent_st;

namespace dgc {

// One GPU. All of a rank's work is queued on one stream, stream(), but for what is done in a lane; uploads travel on
// another, so that they wait for no computation. Every method, and every kernel launch, belongs to the thread that made
// it or called use().
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index);  // throws UserError when there is no such GPU, or no driver
  ~CudaDevice() override;

  // The same GPU with another stream, whose work runs beside this one's and goes first where both have some. Memory of
  // either is for both, and is counted for both together.
  std::shared_ptr<CudaDevice> make_beside() const;
  bool is_same_gpu(const CudaDevice& other) const { return index_ == other.index_; }
  // What is queued here from now on comes after what is queued there so far. May be recorded.
  void follow(const CudaDevice& other);

  CUstream_st* stream() const { return stream_; }        // a cudaStream_t
  CUstream_st* copy_stream() const { return copying_; }  // likewise
  int multiprocessors() const { return multiprocessors_; }
  void use() const;  // makes it the calling thread's device

  // Calls of allocate() so far: while it stays the same, so do all addresses.
  size_t allocations() const { return memory_->allocations; }

  std::string name() const override;
  std::string bus_address() const override;
  bool on_host() const override { return false; }
  void* allocate(size_t bytes) override;
  void free(void* memory, size_t bytes) noexcept override;
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

 private:
  struct Memory {
    std::atomic<size_t> allocations = 0, current = 0, peak = 0;
  };
  CudaDevice(int index, std::shared_ptr<Memory> memory, int priority);

  int index_;
  std::shared_ptr<Memory> memory_;
  int multiprocessors_ = 0;
  CUstream_st* stream_ = nullptr;
  CUstream_st* copying_ = nullptr;
  CUevent_st* reached_ = nullptr;  // how far another device has to wait for this one
};

// Throws InternalError that names the call, unless `error` (a cudaError_t) is success.
void check_cuda(int error, const char* call);

// The GPUs that CudaDevice takes are 0 ... count - 1. `description` says what they are, or why there are none.
struct CudaDevices {
  int count = 0;
  std::string description;
};
CudaDevices find_cuda_devices();

}  // namespace dgc
