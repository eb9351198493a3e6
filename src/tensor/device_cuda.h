#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "tensor/device.h"

// CUDA's own name, so that who includes this needs none of its headers.
struct CUstream_st;

namespace dgc {

// One GPU. All of a rank's work is queued on one stream, stream(); uploads travel on another, so that they wait for no
// computation. Every method, and every kernel launch, belongs to the thread that made it or called use().
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index);  // throws UserError when there is no such GPU, or no driver
  ~CudaDevice() override;

  CUstream_st* stream() const { return stream_; }        // a cudaStream_t
  CUstream_st* copy_stream() const { return copying_; }  // likewise
  int multiprocessors() const { return multiprocessors_; }
  void use() const;  // makes it the calling thread's device

  // Calls of allocate() so far: while it stays the same, so do all addresses.
  size_t allocations() const { return allocations_; }

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
  size_t peak_bytes() const override { return peak_; }

 private:
  int index_;
  int multiprocessors_ = 0;
  CUstream_st* stream_ = nullptr;
  CUstream_st* copying_ = nullptr;
  std::atomic<size_t> allocations_ = 0;
  std::atomic<size_t> current_ = 0;
  std::atomic<size_t> peak_ = 0;
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
